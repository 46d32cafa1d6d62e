"""Every objective trains from a configuration: alone, beside others, with weights of its own that are never lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sbert_train.config import dump_config
from sbert_train.data.collator import collate
from sbert_train.errors import ConfigError, DataError
from sbert_train.evaluation.models import evaluate_models
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.objectives.registry import OBJECTIVES
from sbert_train.objectives.softmax import CLASSIFIER, load_classifier
from sbert_train.training import fit as fit_module
from sbert_train.training.arguments import training_arguments
from sbert_train.training.data import load_training_data
from sbert_train.training.objectives import build_objectives, run_objectives
from sbert_train.training.prepare import load_encoder, load_tasks
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.trainer import SentenceTrainer
from tests.tiny import make_encoder
from tests.training.runs import (
    config,
    log_of,
    losses,
    run,
    sentences,
    without_dropout,
    write_csv,
    write_triplets,
)

SHORT = {"max_steps": 2}


def write_nli(folder: Path, count: int = 24) -> Path:
    """Premises, hypotheses and one of three labels, or its parity."""
    rows = [(one, other, i % 3, i % 2) for i, (one, other, _, _) in enumerate(sentences(count, seed=7))]
    return write_csv(folder / "nli.csv", ("sentence1", "sentence2", "label", "parity"), rows)


def write_margins(folder: Path, count: int = 24) -> Path:
    rows = [(*row[:3], 3.0 + i % 5, i % 3) for i, row in enumerate(sentences(count, seed=8))]
    return write_csv(folder / "margins.csv", ("anchor", "positive", "negative", "score", "other"), rows)


def block_for(name: str, folder: Path, base: Path) -> dict[str, Any]:
    """The data and objective blocks with which an objective can run."""
    needs = OBJECTIVES[name].needs
    train: dict[str, Any] = {"source": str(write_triplets(folder)), "name": "set"}
    if "label" in needs:
        train |= {"source": str(write_nli(folder)), "columns": {}}
        if OBJECTIVES[name].labels == "binary":
            train["columns"] = {"label": "parity"}
    elif name == "margin_mse":
        train["source"] = str(write_margins(folder))
    elif "score" in needs:
        rows = [(*row[:2], row[3]) for row in sentences(24, seed=9)]
        train |= {"source": str(write_csv(folder / "s.csv", ("sentence1", "sentence2", "score"), rows))}
        train["score_range"] = [0, 5]
    objective: dict[str, Any] = {"name": name}
    if name == "embedding_distillation":
        make_encoder(seed=3).save(folder / "teacher")
        objective["teacher"] = str(folder / "teacher")
    return {"data": {"train": [train]}, "objective": objective}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_trains_and_moves_the_weights(name: str, tmp_path: Path, tiny_model: Path) -> None:
    result, lines = run(tmp_path, tiny_model, **block_for(name, tmp_path, tiny_model), train=SHORT)
    assert any(line.startswith(f"objective  {name}") for line in lines)
    assert len(losses(result)) == 2 and all(loss > 0 for loss in losses(result))
    texts = ["the cat saw the dog"]
    moved = SentenceEncoder.load(result.folder.model).encode(texts) - SentenceEncoder.load(tiny_model).encode(
        texts
    )
    assert np.abs(moved).max() > 1e-5


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "batch_triplet"])
def test_every_objective_can_be_a_matryoshka_loss(name: str, tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for(name, tmp_path, tiny_model)
    blocks["objective"] |= {"matryoshka_dims": [32, 8], "matryoshka_weights": [1, 0.5]}
    result, lines = run(tmp_path, tiny_model, **blocks, train=SHORT)
    assert any("dimensions 32 + 8 weighing 1.0 + 0.5" in line for line in lines)
    assert len(losses(result)) == 2


def test_one_run_trains_each_set_towards_its_own_objective(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, tuple[str, ...]]] = []
    forward = SiameseModel.forward

    def watched(self: SiameseModel, batch: Any) -> Any:
        seen.append((batch.objective, tuple(batch.index)))
        return forward(self, batch)

    monkeypatch.setattr(SiameseModel, "forward", watched)
    scored = block_for("cosine_regression", tmp_path, tiny_model)["data"]["train"][0]
    nli = {"source": str(write_nli(tmp_path)), "objective": {"name": "softmax"}}
    result, lines = run(
        tmp_path,
        tiny_model,
        data={"train": [nli, scored]},
        objective={"name": "cosine_regression"},
        train={"num_train_epochs": 1},
    )
    assert sorted(seen) == [(0, ("sentence1", "sentence2"))] * 3 + [(1, ("sentence1", "sentence2"))] * 3
    told = [line for line in lines if line.startswith("objective")]
    assert told == [
        "objective  softmax (concat u + v + difference), for nli",
        "objective  cosine_regression, for set",
    ]
    classifier = load_classifier(result.folder.model / CLASSIFIER)
    assert (classifier.dimension, classifier.classes) == (32, 3)


def trainer_of(settings: Any, **arguments: Any) -> SentenceTrainer:
    """The trainer that a run has, without the rest of the run."""
    args = training_arguments(settings, **arguments)
    torch.manual_seed(settings.seed)
    objectives = run_objectives(settings)
    encoder = load_encoder(settings, args.device)
    data = load_training_data(settings, encoder, objectives, batch_size=8, drop_last=False)
    model = SiameseModel(encoder, build_objectives(objectives, encoder, data.classes))
    return SentenceTrainer(model, args, rows=data.rows, batches=data.batches)


def test_a_resumed_classifier_is_the_one_that_was_interrupted(tmp_path: Path, tiny_model: Path) -> None:
    """sentence-transformers loses it: its loss is no part of the model that a checkpoint holds."""
    settings = config(
        tmp_path,
        tiny_model,
        **block_for("softmax", tmp_path, tiny_model),
        train={"num_train_epochs": 2, "save_strategy": "steps", "save_steps": 2},
    )
    whole = trainer_of(settings)
    whole.train()
    checkpoint = Path(str(whole.args.output_dir)) / "checkpoint-4"
    begun = trainer_of(settings).siamese.classifier
    assert begun is not None and whole.siamese.classifier is not None
    resumed = trainer_of(settings)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == whole.state.global_step == 6
    expected = whole.siamese.state_dict()
    assert [
        name for name, found in resumed.siamese.state_dict().items() if not torch.equal(found, expected[name])
    ] == []
    assert not torch.equal(whole.siamese.classifier.linear.weight, begun.linear.weight), "training moved it"
    saved = load_file(checkpoint / "model.safetensors")["objectives.0.loss.linear.weight"]
    assert not torch.equal(saved, whole.siamese.classifier.linear.weight), (
        "and went on moving it after the checkpoint"
    )


def test_the_classifier_of_the_best_checkpoint_is_kept(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    scored = [(*row[:2], row[3]) for row in sentences(24, seed=100)]
    file = write_csv(tmp_path / "dev.csv", ("sentence1", "sentence2", "score"), scored)
    blocks["data"]["eval"] = [{"source": str(file), "task": "sts"}]
    # What counts as best is turned round where need be, so that it is not the last one.
    for better in (True, False):
        train = {
            "num_train_epochs": 4,
            "greater_is_better": better,
            "learning_rate": 3e-3,
            "save_total_limit": 9,
        }
        result, _ = run(
            tmp_path, tiny_model, **blocks, train=train, output_dir=str(tmp_path / f"run{better}")
        )
        best = json.loads(result.folder.report.read_text())["training"]["best_step"]
        if best < 12:
            break
    assert best < 12
    saved = load_file(result.folder.checkpoints / f"checkpoint-{best}" / "model.safetensors")
    kept = load_classifier(result.folder.model / CLASSIFIER)
    assert torch.equal(kept.linear.weight, saved["objectives.0.loss.linear.weight"])
    last = load_file(result.folder.checkpoints / "checkpoint-12" / "model.safetensors")
    assert not torch.equal(kept.linear.weight, last["objectives.0.loss.linear.weight"])


def test_a_run_from_a_model_with_a_classifier_takes_it_up(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    first, lines = run(tmp_path, tiny_model, **blocks, train=SHORT)
    assert "classifier new, of 3 classes" in lines
    nowhere = {"max_steps": 1, "learning_rate": 1e-12}
    second, lines = run(
        tmp_path, first.folder.model, **blocks, train=nowhere, output_dir=str(tmp_path / "second")
    )
    assert "classifier of 3 classes, that of the base" in lines
    one, other = (
        load_classifier(result.folder.model / CLASSIFIER).linear.weight for result in (first, second)
    )
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)
    blocks["objective"]["concat"] = ["u", "v"]
    _, lines = run(tmp_path, first.folder.model, **blocks, train=SHORT, output_dir=str(tmp_path / "third"))
    (told,) = [line for line in lines if line.startswith("classifier")]
    assert told.startswith("classifier new, of 3 classes: the one of the base is another")


HEAD = {"dim": 16, "activation": "identity"}


def test_a_frozen_backbone_runs_once_and_the_head_trains_as_if_it_ran_each_time(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = without_dropout(tiny_model, tmp_path)
    asked: list[int] = []
    pool_texts = SentenceEncoder.pool_texts

    def watched(self: SentenceEncoder, texts: Any, **options: Any) -> Any:
        asked.append(len(texts))
        return pool_texts(self, texts, **options)

    monkeypatch.setattr(SentenceEncoder, "pool_texts", watched)
    model = {"base": str(base), "head": HEAD, "freeze": "backbone", "prompts": {"anchor": "a cat "}}
    result, lines = run(tmp_path, base, model=model, train={"num_train_epochs": 2})
    read = sum(asked)
    assert any("the backbone is frozen: the vectors of 1" in line for line in lines)
    again, _ = run(tmp_path, base, model=model, train={"num_train_epochs": 2})
    assert sum(asked) == read, "a second run finds the vectors on disk, of training and of evaluation"
    assert (again.folder.model / "2_Dense" / "model.safetensors").read_bytes() == (
        result.folder.model / "2_Dense" / "model.safetensors"
    ).read_bytes()

    monkeypatch.setattr(fit_module, "FrozenTexts", lambda encoder: None)
    slow, lines = run(
        tmp_path, base, model=model, train={"num_train_epochs": 2}, output_dir=str(tmp_path / "slow")
    )
    assert any(line.startswith("engine     packed") for line in lines)
    assert losses(slow) == pytest.approx(losses(result), rel=1e-4)
    assert losses(result)[-1] < losses(result)[0], "the head did train"
    texts = ["the cat saw the dog", "a bird"]
    np.testing.assert_allclose(
        SentenceEncoder.load(slow.folder.model).encode(texts, role="anchor"),
        SentenceEncoder.load(result.folder.model).encode(texts, role="anchor"),
        atol=1e-4,
    )
    checkpoint = result.folder.checkpoints / "checkpoint-12" / "model.safetensors"
    assert set(load_file(checkpoint)) == {"weights.0.linear.weight", "weights.0.linear.bias"}
    frozen, before = (load_file(folder / "model.safetensors") for folder in (result.folder.model, base))
    assert all(torch.equal(frozen[name], before[name]) for name in before)


@pytest.mark.parametrize("size", [32, 48])
def test_a_student_comes_closer_to_its_teacher_also_to_one_of_more_dimensions(
    tmp_path: Path, tiny_model: Path, size: int
) -> None:
    from sbert_train.model.head import HeadSpec, make_head

    teacher = make_encoder(seed=3, head=None if size == 32 else make_head(HeadSpec(size, "identity"), 32))
    teacher.save(tmp_path / "teacher")
    result, lines = run(
        tmp_path,
        tiny_model,
        objective={"name": "embedding_distillation", "teacher": str(tmp_path / "teacher")},
        train={"num_train_epochs": 8},
    )
    assert any(
        line == "objective  embedding_distillation (distance mse, taught by another model)" for line in lines
    )
    assert losses(result)[-1] < 0.6 * losses(result)[0]


def test_a_teacher_of_fewer_dimensions_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    from sbert_train.model.head import HeadSpec, make_head

    make_encoder(seed=3, head=make_head(HeadSpec(8), 32)).save(tmp_path / "teacher")
    with pytest.raises(
        ConfigError, match=r"objective\.teacher: expected at least 32 dimensions.*found 8; give the"
    ):
        run(
            tmp_path,
            tiny_model,
            objective={"name": "embedding_distillation", "teacher": str(tmp_path / "teacher")},
        )


def test_a_batch_carries_what_the_reference_makes_of_its_texts(tmp_path: Path, tiny_model: Path) -> None:
    guide = make_encoder(seed=3, prompts={"query": "a cat "})
    guide.save(tmp_path / "guide")
    settings = config(
        tmp_path, tiny_model, objective={"name": "in_batch_negatives", "guide": str(tmp_path / "guide")}
    )
    encoder = load_encoder(settings, torch.device("cpu"))
    data = load_training_data(settings, encoder, run_objectives(settings), batch_size=8, drop_last=False)
    batch = collate(data.rows.__getitems__([5, 2]))
    texts = data.sets[0].rows[[5, 2]]
    for role, wanted in (("anchor", texts["anchor"]), ("negative", [one for (one,) in texts["negative"]])):
        np.testing.assert_allclose(
            batch.reference[role].reshape(2, -1), guide.encode(wanted, role=role), atol=1e-6
        )
    assert np.abs(guide.encode(texts["anchor"]) - guide.encode(texts["anchor"], role="anchor")).max() > 1e-3


def test_margins_may_be_scores_of_the_positive_and_its_negatives(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("margin_mse", tmp_path, tiny_model)
    blocks["data"]["train"][0]["columns"] = {"score": ["score", "other"]}
    several, _ = run(tmp_path, without_dropout(tiny_model, tmp_path), **blocks, train=SHORT)
    rows = [(*row[:3], 3.0 + i % 5 - i % 3) for i, row in enumerate(sentences(24, seed=8))]
    write_csv(tmp_path / "margins.csv", ("anchor", "positive", "negative", "score"), rows)
    del blocks["data"]["train"][0]["columns"]
    one, _ = run(tmp_path, tmp_path / "base", **blocks, train=SHORT, output_dir=str(tmp_path / "one"))
    assert losses(one) == pytest.approx(losses(several), rel=1e-5)


def data_block(folder: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {"train": [{"name": "set", "source": str(write_csv(folder / "rows.csv", header, rows))}]}


PAIR = ("sentence1", "sentence2")


@pytest.mark.parametrize(
    ("name", "header", "values", "words"),
    [
        (
            "contrastive",
            (*PAIR, "label"),
            [(0,), (2,)],
            "takes the labels 0 and 1, found 0, 2; filter such rows",
        ),
        (
            "online_contrastive",
            (*PAIR, "label"),
            [(1,), (1,)],
            "at least two different labels, found 1 in all",
        ),
        ("softmax", (*PAIR, "label"), [(-2,), (1,)], "takes the labels 0, 1, 2, ..., found -2, 1; filter"),
        (
            "softmax",
            (*PAIR, "label"),
            [(0,), (0,)],
            "expected at least two different labels, found 0 in all 2 rows",
        ),
        ("batch_triplet", ("sentence1", "sentence2", "label"), [(0,), (1,)], "each of 2 labels once"),
        ("cosent", (*PAIR, "score"), [(2,), (2,)], "expected different scores, found 2 in all 2 rows"),
        ("cosine_regression", (*PAIR, "score"), [(2,), (0,)], "takes -1 to 1; set score_range"),
        ("margin_mse", ("anchor", "positive", "score"), [(2,), (1,)], "missing: negative"),
    ],
)
def test_what_an_objective_cannot_be_trained_on_is_refused_at_load(
    tmp_path: Path, tiny_model: Path, name: str, header: tuple[str, ...], values: list[tuple[int]], words: str
) -> None:
    rows = [("the cat", "the dog", *value) for value in values]
    with pytest.raises(DataError) as raised:
        run(tmp_path, tiny_model, data=data_block(tmp_path, header, rows), objective={"name": name})
    assert str(raised.value).startswith("data set set: ") and words in str(raised.value)


def test_scores_must_be_as_many_as_the_objective_takes(tmp_path: Path, tiny_model: Path) -> None:
    rows = [("the cat", "the dog", "a bird", 1, 2, 3), ("a bird", "the dog", "the cat", 3, 2, 1)]
    data = data_block(tmp_path, ("anchor", "positive", "negative", "a", "b", "c"), rows)
    data["train"][0]["columns"] = {"score": ["a", "b", "c"]}
    with pytest.raises(
        DataError, match=r"takes 1 scores for 1 negatives .* or 2 .* found 3; map their columns"
    ):
        run(tmp_path, tiny_model, data=data, objective={"name": "margin_mse"})
    data["train"][0]["columns"] = {"score": ["a", "b"], "sentence1": "anchor", "sentence2": "positive"}
    with pytest.raises(DataError, match=r"objective cosent takes one score a row, found 2; map one column"):
        run(tmp_path, tiny_model, data=data, objective={"name": "cosent"})


def test_a_dimension_beyond_the_models_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"matryoshka_dims: expected at most 32, the dimensions of the model, found 64"
    ):
        run(tmp_path, tiny_model, objective={"name": "in_batch_negatives", "matryoshka_dims": [64, 32]})


def test_labels_of_minus_one_and_one_are_targets_of_a_regression(tmp_path: Path, tiny_model: Path) -> None:
    rows = [(*row[:2], 1 if i % 2 else -1) for i, row in enumerate(sentences(16))]
    data = data_block(tmp_path, (*PAIR, "verdict"), rows)
    data["train"][0] |= {"columns": {"score": "verdict"}}
    settings = config(tmp_path, tiny_model, data=data, objective={"name": "cosine_regression"})
    found = load_training_data(
        settings,
        load_encoder(settings, torch.device("cpu")),
        run_objectives(settings),
        batch_size=8,
        drop_last=False,
    )
    assert collate(found.rows.__getitems__([0, 1])).labels.tolist() == [-1, 1]  # type: ignore[union-attr]
    data["train"][0]["score_range"] = [-1, 1]
    settings = config(tmp_path, tiny_model, data=data, objective={"name": "cosine_regression"})
    found = load_training_data(
        settings,
        load_encoder(settings, torch.device("cpu")),
        run_objectives(settings),
        batch_size=8,
        drop_last=False,
    )
    assert collate(found.rows.__getitems__([0, 1])).labels.tolist() == [0, 1]  # type: ignore[union-attr]


def test_a_run_is_evaluated_by_its_classifier(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    blocks["data"]["eval"] = [{"name": "nli", "source": str(write_nli(tmp_path)), "task": "nli"}]
    result, _ = run(tmp_path, tiny_model, **blocks, train={"num_train_epochs": 30, "learning_rate": 5e-3})
    (task,) = json.loads(result.folder.report.read_text())["evaluation"]["tasks"]
    before, after = (task["scores"][name]["accuracy"]["value"] for name in ("before", "after"))
    assert before < 0.7 < after, "it learns its own training set"
    (again,) = evaluate_models(
        [str(result.folder.model)], load_tasks(config(tmp_path, tiny_model, **blocks).data.eval)[1]
    ).tasks
    assert again.scores[str(result.folder.model)]["accuracy"].value == after, (
        "what is saved is what was judged"
    )


def test_a_matryoshka_run_is_evaluated_at_each_of_its_dimensions(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(
        tmp_path,
        tiny_model,
        objective={"name": "in_batch_negatives", "matryoshka_dims": [32, 16, 4]},
        train={"metric_for_best_model": "eval_pairs_dim4_spearman_cosine", "num_train_epochs": 2},
    )
    report = json.loads(result.folder.report.read_text())
    assert [task["task"] for task in report["evaluation"]["tasks"]] == ["pairs", "pairs_dim16", "pairs_dim4"]
    logged = [entry for entry in log_of(result) if "eval_pairs_dim4_spearman_cosine" in entry]
    best = max(logged, key=lambda entry: entry["eval_pairs_dim4_spearman_cosine"])
    assert report["training"]["best_step"] == best["step"], "any of them can choose the checkpoint"


def test_a_learnt_scale_moves_and_does_not_decay(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(
        tmp_path,
        tiny_model,
        data={"train": [{"source": str(write_triplets(tmp_path))}]},
        objective={"name": "in_batch_negatives", "temperature": 0.1, "learnable_scale": True},
        train={"weight_decay": 0.1, "num_train_epochs": 1},
    )
    trainer = trainer_of(settings)
    (scale,) = trainer.siamese.objectives.parameters()
    started = float(scale.detach().exp())
    assert started == pytest.approx(10)
    trainer.train()
    assert abs(float(scale.detach().exp()) - started) > 1e-3
    optimizer = trainer.optimizer
    assert optimizer is not None
    decays = {id(one): group["weight_decay"] for group in optimizer.param_groups for one in group["params"]}
    assert decays[id(scale)] == 0 and 0.1 in decays.values()


@pytest.mark.slow
def test_two_processes_train_several_objectives_as_one(tmp_path: Path, tiny_model: Path) -> None:
    """The classifier has no gradient in the steps of the other set, for which the processes must not wait."""
    base = without_dropout(tiny_model, tmp_path)
    scored = block_for("cosine_regression", tmp_path, base)["data"]["train"][0]
    nli = {"source": str(write_nli(tmp_path)), "objective": {"name": "softmax"}}
    blocks: dict[str, Any] = {
        "data": {"train": [nli, scored]},
        "objective": {"name": "cosine_regression"},
        "model": {"base": str(base), "head": {"dim": 16, "shared": False}},
    }
    one, _ = run(tmp_path, base, **blocks, train={"per_device_train_batch_size": 8})
    half = config(
        tmp_path, base, **blocks, output_dir=str(tmp_path / "two"), train={"per_device_train_batch_size": 4}
    )
    (tmp_path / "two.yaml").write_text(dump_config(half))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "sbert_train", "fit", "--config", str(tmp_path / "two.yaml")]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert finished.returncode == 0, finished.stderr
    entries = [json.loads(line) for line in (tmp_path / "two" / "log.jsonl").read_text().splitlines()]
    assert [entry["loss"] for entry in entries if "loss" in entry] == pytest.approx(losses(one), rel=1e-3)
    together, alone = (
        load_classifier(folder / "model" / CLASSIFIER).linear.weight
        for folder in (tmp_path / "two", one.folder.root)
    )
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=0)
