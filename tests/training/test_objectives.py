"""Every objective trains from a configuration: alone, beside others, and only on what it can be trained on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sbert_train.config import RunConfig, dump_config
from sbert_train.data.collator import collate
from sbert_train.errors import ConfigError, DataError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.objectives.registry import OBJECTIVES
from sbert_train.objectives.softmax import CLASSIFIER, load_classifier
from sbert_train.training.data import load_training_data
from sbert_train.training.objectives import run_objectives
from sbert_train.training.prepare import load_encoder
from sbert_train.training.siamese import SiameseModel
from tests.training.objective_runs import SHORT, block_for, trainer_of, write_margins, write_nli
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


def test_the_plan_tells_the_options_of_an_objective_but_those_that_are_off(
    tmp_path: Path, tiny_model: Path
) -> None:
    objective = {"name": "in_batch_negatives", "symmetric": True, "gather": False}
    _, lines = run(tmp_path, tiny_model, objective=objective, train=SHORT)
    (line,) = (line for line in lines if line.startswith("objective"))
    assert line == "objective  in_batch_negatives (scale 20.0, similarity cosine, symmetric, mask_identical)"
    objective = {"name": "in_batch_negatives", "guide": "self", "mask_identical": False, "gather": False}
    _, lines = run(
        tmp_path, tiny_model, objective=objective, train=SHORT, output_dir=str(tmp_path / "guided")
    )
    (line,) = (line for line in lines if line.startswith("objective"))
    assert line.endswith(
        "(scale 20.0, similarity cosine, guide_margin 0.0, margin_strategy absolute, guided by itself)"
    )


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
        (
            "softmax",
            (*PAIR, "label"),
            [(3,), (10**11,)],
            "found 2 different ones up to 100,000,000,000; number",
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


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("cosent", 1, "expected at least 2, as objective cosent compares the rows of a batch, found 1"),
        ("online_contrastive", 1, "expected at least 2"),
        ("batch_triplet", 2, "expected at least 4, and an even number"),
        ("batch_triplet", 5, "expected at least 4, and an even number"),
        ("in_batch_negatives", 1, "expected at least 2"),
    ],
)
def test_a_batch_too_small_to_learn_from_is_refused(
    tmp_path: Path, tiny_model: Path, name: str, rows: int, words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        run(tmp_path, tiny_model, objective={"name": name}, train={"per_device_train_batch_size": rows})
    assert str(raised.value).startswith("train.per_device_train_batch_size: ") and words in str(raised.value)


def test_hard_negatives_that_are_not_there_cannot_weigh_more(tmp_path: Path, tiny_model: Path) -> None:
    data = data_block(tmp_path, ("anchor", "positive"), [row[:2] for row in sentences(16)])
    objective = {"name": "in_batch_negatives", "hardness": "hard", "hardness_strength": 5}
    with pytest.raises(DataError, match="hardness hard weighs a row's own negatives, and there are none"):
        run(tmp_path, tiny_model, data=data, objective=objective)


def test_a_head_that_no_text_would_train_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("embedding_distillation", tmp_path, tiny_model)
    rows = [(row[0],) for row in sentences(16)]
    blocks["data"] = data_block(tmp_path, ("sentence1",), rows)
    blocks["model"] = {"base": str(tiny_model), "head": {"dim": 16, "shared": False}}
    with pytest.raises(ConfigError, match="no training set has a text for the document head"):
        run(tmp_path, tiny_model, **blocks)


def test_sets_that_share_batches_need_as_many_scores(tmp_path: Path, tiny_model: Path) -> None:
    source = str(write_margins(tmp_path))
    sets = [
        {"name": "a", "source": source},
        {"name": "b", "source": source, "columns": {"score": ["score", "other"]}},
    ]
    data = {"train": sets, "mixing": {"datasets_per_batch": 2}}
    with pytest.raises(DataError, match=r"a has .*score, but b has .*score \(2 each\); sets that share"):
        run(tmp_path, tiny_model, data=data, objective={"name": "margin_mse"})


def batches_of(settings: RunConfig) -> list[list[int]]:
    encoder = load_encoder(settings, torch.device("cpu"))
    data = load_training_data(settings, encoder, run_objectives(settings), batch_size=8, drop_last=False)
    return list(data.batches)


@pytest.mark.parametrize("apart", [True, False])
def test_texts_of_one_batch_are_kept_apart_where_they_are_negatives_unless_told_otherwise(
    apart: bool, tmp_path: Path, tiny_model: Path
) -> None:
    anchors, positives = sentences(24), sentences(32, seed=5)
    rows = [(anchors[i % 24][0], positives[i][1]) for i in range(32)]
    source = write_csv(tmp_path / "pairs.csv", ("anchor", "positive"), rows)
    data = {"train": [{"source": str(source)}], "no_duplicates": apart}
    found = batches_of(config(tmp_path, tiny_model, data=data))
    assert all(len({i % 24 for i in batch}) == len(batch) for batch in found) == apart


def test_labels_come_in_pairs_where_triplets_are_mined(tmp_path: Path, tiny_model: Path) -> None:
    rows = [(row[0], i % 16) for i, row in enumerate(sentences(32))]
    source = write_csv(tmp_path / "labelled.csv", ("sentence1", "label"), rows)
    blocks = {"data": {"train": [{"source": str(source)}]}, "objective": {"name": "batch_triplet"}}
    for batch in batches_of(config(tmp_path, tiny_model, **blocks)):
        assert all(sum(i % 16 == j % 16 for j in batch) == 2 for i in batch)
