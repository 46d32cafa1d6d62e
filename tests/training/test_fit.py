"""A whole run, from configuration to a folder that sentence-transformers loads."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers.trainer_utils import get_last_checkpoint

from sbert_train.config import dump_config, load_config
from sbert_train.errors import ConfigError, DataError, EvaluationError, TrainingError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training import fit as fit_module
from sbert_train.training.fit import fit
from tests.training.runs import config, log_of, losses, run, without_dropout, write_scored, write_triplets


def test_a_run_leaves_its_folder_and_a_model_that_others_load(tmp_path: Path, tiny_model: Path) -> None:
    result, lines = run(tmp_path, tiny_model)
    folder = result.folder
    assert folder.config.read_text() == dump_config(config(tmp_path, tiny_model))
    assert json.loads(folder.environment.read_text())["packages"]["torch"] == torch.__version__
    assert get_last_checkpoint(str(folder.checkpoints)) == str(folder.checkpoints / "checkpoint-6")
    assert [entry["step"] for entry in log_of(result) if "loss" in entry] == [1, 2, 3, 4, 5, 6]

    texts = ["the cat saw the dog", "a bird"]
    tuned = SentenceEncoder.load(folder.model).encode(texts)
    np.testing.assert_allclose(
        SentenceTransformer(str(folder.model), device="cpu").encode(texts), tuned, atol=1e-5
    )
    assert np.abs(tuned - SentenceEncoder.load(tiny_model).encode(texts)).max() > 0.01, (
        "training moved the weights"
    )

    report = json.loads(folder.report.read_text())
    assert report["training"]["steps"] == 6 and report["training"]["best_step"] == 6
    account = {
        "set": "triplets0",
        "use": "training",
        "read": 48,
        "kept": 48,
        "filtered": 0,
        "limited": 0,
        "dropped": {},
        "kept_with": {},
        "columns": {role: [role] for role in ("anchor", "positive", "negative")},
    }
    assert report["data"][0].items() >= account.items() and report["data"][0]["repeats"]["texts"] == 144
    assert report["negatives"][0].startswith("each anchor sees 7 in-batch + 8 hard negatives")
    scores = report["evaluation"]["tasks"][0]["scores"]
    assert scores["before"]["spearman_cosine"]["value"] != scores["after"]["spearman_cosine"]["value"]
    logged = [
        entry["eval_pairs_spearman_cosine"]
        for entry in log_of(result)
        if "eval_pairs_spearman_cosine" in entry
    ]
    assert logged[-1] == scores["after"]["spearman_cosine"]["value"]

    plan = "\n".join(lines)
    assert "mean pooling" in plan and "triplets0: 48 rows read, all kept" in plan and "packed: " in plan
    assert "each anchor sees 7 in-batch + 8 hard negatives" in plan


def test_the_same_run_gives_the_same_weights(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model)
    first = (result.folder.model / "model.safetensors").read_bytes()
    again = fit(load_config(result.folder.config), say=lambda line: None)
    assert (again.folder.model / "model.safetensors").read_bytes() == first
    assert len(losses(again)) == 6, "the log was begun anew"
    other, _ = run(tmp_path, tiny_model, output_dir=str(tmp_path / "other"), seed=1)
    assert (other.folder.model / "model.safetensors").read_bytes() != first


@pytest.mark.parametrize("packing", ["sorted", "padded"])
def test_every_way_through_the_backbone_gives_the_same_losses(
    tmp_path: Path, tiny_model: Path, packing: str
) -> None:
    base = without_dropout(tiny_model, tmp_path)
    packed, lines = run(tmp_path, base)
    assert any(line.startswith("engine     packed") for line in lines)
    other, _ = run(tmp_path, base, output_dir=str(tmp_path / "other"), engine={"packing": packing})
    assert losses(other) == pytest.approx(losses(packed), rel=1e-4)


def test_gradient_accumulation_of_a_regression_equals_the_large_batch(
    tmp_path: Path, tiny_model: Path
) -> None:
    base = without_dropout(tiny_model, tmp_path)
    blocks: dict[str, Any] = {
        "objective": {"name": "cosine_regression"},
        "data": {"train": [{"source": str(write_scored(tmp_path, 32)), "score_range": [0, 5]}]},
    }
    whole, _ = run(tmp_path, base, **blocks, train={"per_device_train_batch_size": 16, "optim": "sgd"})
    halves, _ = run(
        tmp_path,
        base,
        **blocks,
        output_dir=str(tmp_path / "halves"),
        train={"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2, "optim": "sgd"},
    )
    assert len(losses(whole)) == 2
    assert losses(halves) == pytest.approx(losses(whole), rel=1e-4)


@pytest.mark.parametrize(
    "train",
    [
        {"bf16": True},
        {"gradient_checkpointing": True},
        {"lr_scheduler_type": "cosine", "weight_decay": 0.01, "max_grad_norm": 0.5},
        {"dataloader_num_workers": 1},
        {"max_steps": 3, "eval_strategy": "steps", "eval_steps": 1},
    ],
    ids=lambda train: next(iter(train)),
)
def test_training_arguments_take_effect(tmp_path: Path, tiny_model: Path, train: dict[str, Any]) -> None:
    plain, _ = run(tmp_path, tiny_model, output_dir=str(tmp_path / "plain"))
    engine = {"precision": "auto"} if "bf16" in train else {}
    result, _ = run(tmp_path, tiny_model, train=train, engine=engine)
    found = losses(result)
    assert len(found) == train.get("max_steps", 6) and np.isfinite(found).all()
    if "gradient_checkpointing" in train or "dataloader_num_workers" in train:
        assert found == pytest.approx(losses(plain), rel=1e-4), "the same training by other means"
    else:
        weights = [(one.folder.model / "model.safetensors").read_bytes() for one in (plain, result)]
        assert weights[0] != weights[1]


def test_the_best_checkpoint_is_selected_by_any_metric_of_any_eval_set(
    tmp_path: Path, tiny_model: Path
) -> None:
    base = config(tmp_path, tiny_model)
    pairs = base.data.eval[0].model_dump()
    questions = {"name": "search", "task": "retrieval", "source": str(write_triplets(tmp_path, 20, seed=5))}
    result, _ = run(
        tmp_path,
        tiny_model,
        data={"train": [base.data.train[0].model_dump()], "eval": [pairs, questions]},
        train={"num_train_epochs": 4, "metric_for_best_model": "search_mrr@10", "learning_rate": 5e-3},
    )
    first, *entries = [entry for entry in log_of(result) if "eval_search_mrr@10" in entry]
    assert first["step"] == 0, "the base"
    best = max(entries, key=lambda entry: entry["eval_search_mrr@10"])
    report = json.loads(result.folder.report.read_text())
    assert len(entries) == 4 and "eval_pairs_spearman_cosine" in entries[0]
    assert report["training"]["best_step"] == best["step"]
    assert result.comparison is not None
    after = result.comparison.tasks[1].scores["after"]["mrr@10"].value
    assert after == pytest.approx(best["eval_search_mrr@10"]), "the saved model is the best one, not the last"


def test_early_stopping_ends_a_run_that_no_longer_improves(tmp_path: Path, tiny_model: Path) -> None:
    train = {"num_train_epochs": 30, "early_stopping_patience": 1, "learning_rate": 1e-12}
    result, _ = run(tmp_path, tiny_model, train=train)
    assert json.loads(result.folder.report.read_text())["training"]["epochs"] == 2


def test_tensorboard_gets_losses_and_metrics(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    run(tmp_path, tiny_model, train={"report_to": "tensorboard"})
    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    assert {"train/loss", "eval/pairs_spearman_cosine"} <= set(events.Tags()["scalars"])
    assert len(events.Scalars("train/loss")) == 6
    assert [event.step for event in events.Scalars("eval/pairs_spearman_cosine")] == [0, 6]
    assert [event.step for event in events.Scalars("train/monitor_uniformity")] == [0, 6]
    assert len(events.Scalars("train/grad_norm")) == 6


def test_several_sets_with_different_roles_train_in_batches_of_their_own(
    tmp_path: Path, tiny_model: Path
) -> None:
    from tests.training.runs import sentences, write_csv

    pairs = write_csv(tmp_path / "pairs.csv", ("question", "answer"), [row[:2] for row in sentences(16, 9)])
    data = {
        "train": [
            {"source": str(write_triplets(tmp_path))},
            {"source": str(pairs), "columns": {"anchor": "question", "positive": "answer"}},
        ]
    }
    result, _ = run(tmp_path, tiny_model, data=data)
    assert len(losses(result)) == 8 and result.comparison is None
    with pytest.raises(
        DataError, match=r"triplets0 has .*negative.*, but pairs has anchor, positive; .* set it to 1"
    ):
        run(
            tmp_path,
            tiny_model,
            output_dir=str(tmp_path / "2"),
            data={**data, "mixing": {"datasets_per_batch": 2}},
        )


def test_prompts_and_head_are_trained_saved_and_used(tmp_path: Path, tiny_model: Path) -> None:
    model = {
        "base": str(tiny_model),
        "pooling": "cls",
        "head": {"dim": 8, "dropout": 0.1},
        "normalize": True,
        "max_length": 20,
        "prompts": {"anchor": "the cat ", "positive": "the dog "},
    }
    result, _ = run(tmp_path, tiny_model, model=model)
    tuned = SentenceEncoder.load(result.folder.model)
    assert (tuned.pooling, tuned.dimension, tuned.normalize, tuned.max_length) == ("cls", 8, True, 20)
    assert tuned.prompt_for("anchor") == "the cat "
    theirs = SentenceTransformer(str(result.folder.model), device="cpu")
    np.testing.assert_allclose(
        theirs.encode_query(["a bird"]), tuned.encode(["a bird"], role="anchor"), atol=1e-5
    )


@pytest.fixture
def collapsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def encode(self: SentenceEncoder, texts: list[str], **_: Any) -> np.ndarray:
        return np.ones((len(texts), self.dimension), dtype=np.float32)

    monkeypatch.setattr(SentenceEncoder, "encode", encode)
    yield


@pytest.mark.usefixtures("collapsed")
def test_constant_predictions_stop_the_run_and_name_the_set(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(EvaluationError, match="eval set 'pairs': the model embeds all 24 pairs alike"):
        run(tmp_path, tiny_model)


def test_a_metric_that_no_eval_set_gives_is_named_before_training(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"train.metric_for_best_model: no eval set gives stsb_f1; there are: pairs_"
    ):
        run(tmp_path, tiny_model, train={"metric_for_best_model": "stsb_f1"})


def test_a_missing_role_is_told_with_the_columns_found(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(
        DataError, match=r"triplets0: objective cosine_regression needs .*missing: sentence1.*found: anchor"
    ):
        run(tmp_path, tiny_model, objective={"name": "cosine_regression"})


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "scores.csv").write_text("sentence1,sentence2,score\na,b,high\n")
    data = {
        "train": [{"source": str(write_triplets(tmp_path))}, {"source": str(tmp_path / "empty.csv")},
                  {"source": str(tmp_path / "scores.csv"), "columns": {"score": None}}],
        "eval": [{"task": "sts", "source": str(tmp_path / "scores.csv")}],
    }  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, tmp_path / "no-model", data=data, train={"optim": "adamm", "lr": 1})
    lines = str(caught.value).splitlines()
    expected = [
        r"train\.optim: expected .*, found \"adamm\"",
        r"train\.lr: unknown name, use learning_rate",
        r".*no-model.*",
        r"data set empty: .*empty\.csv is empty",
        r"data set scores: .*anchor",
        r"data set scores: .*scores\.csv, line 2: score needs a finite number, column 'score' has 'high'",
    ]
    assert len(lines) == len(expected), lines
    assert [bool(re.match(one, line)) for one, line in zip(expected, lines, strict=True)] == [True] * 6, lines
    assert not (tmp_path / "run").exists()


def test_a_batch_larger_than_the_data_is_told(tmp_path: Path, tiny_model: Path) -> None:
    train = {"per_device_train_batch_size": 64, "dataloader_drop_last": True}
    with pytest.raises(DataError, match=r"triplets0: its 48 rows do not fill the 64 that a batch"):
        run(tmp_path, tiny_model, train=train)


def test_a_run_that_diverged_writes_no_model(tmp_path: Path, tiny_model: Path) -> None:
    data = config(tmp_path, tiny_model).data.model_dump() | {"eval": []}
    train = {"learning_rate": 1e38, "max_grad_norm": 0}
    with pytest.raises(TrainingError, match=r"the loss of step 3 is nan; lower train.learning_rate"):
        run(tmp_path, tiny_model, data=data, train=train)
    assert not (tmp_path / "run" / "model").exists()


def test_what_the_optimizer_refuses_is_told_before_the_baseline(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match=r"train.optim: Invalid beta parameter at index 0: 2.0"):
        run(tmp_path, tiny_model, train={"adam_beta1": 2.0})


def test_the_similarity_of_the_objective_goes_with_the_model(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(
        tmp_path, tiny_model, objective={"name": "in_batch_negatives", "similarity": "dot", "scale": 1}
    )
    assert SentenceEncoder.load(result.folder.model).similarity == "dot"


def test_scores_that_no_cosine_can_reach_are_refused(tmp_path: Path, tiny_model: Path) -> None:
    data = config(tmp_path, tiny_model).data.model_dump()
    data["train"] = [{"name": "scored", "source": str(write_scored(tmp_path))}]
    with pytest.raises(
        DataError, match=r"scored: its scores reach from 0 to 5, but .* takes -1 to 1; set score_range"
    ):
        run(tmp_path, tiny_model, data=data, objective={"name": "cosine_regression"})


def test_one_row_has_no_negatives(tmp_path: Path, tiny_model: Path) -> None:
    data = config(tmp_path, tiny_model).data.model_dump()
    data["train"][0]["limit"] = 1
    with pytest.raises(
        DataError,
        match=r"triplets0: expected at least two rows, .* found 1 \(triplets0: \d+ rows read, 1 kept",
    ):
        run(tmp_path, tiny_model, data=data)


def test_a_second_run_does_not_tokenise(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sbert_train.data import tokens

    calls = []
    tokenise_table = tokens.tokenise_table

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return tokenise_table(*args, **kwargs)

    monkeypatch.setattr(tokens, "tokenise_table", counted)
    run(tmp_path, tiny_model)
    assert calls, "the premise: the first run tokenises"
    calls.clear()
    run(tmp_path, tiny_model, output_dir=str(tmp_path / "other"))
    assert not calls


def test_fit_reads_as_a_story() -> None:
    """One file tells it; what it calls lives elsewhere."""
    lines = Path(fit_module.__file__).read_text().splitlines()
    assert len(lines) < 200


@pytest.mark.slow
@pytest.mark.parametrize("cache", [None, 60])
def test_two_processes_train_as_one_with_the_double_batch(
    tmp_path: Path, tiny_model: Path, cache: int | None
) -> None:
    """torchrun on CPU with gloo: the same losses and weights, from one process that writes."""
    base = without_dropout(tiny_model, tmp_path)
    data = config(tmp_path, base).data.model_dump(mode="json") | {"no_duplicates": False}
    one, _ = run(tmp_path, base, data=data, train={"per_device_train_batch_size": 16})

    half = config(
        tmp_path, base, data=data, output_dir=str(tmp_path / "two"), engine={"gradient_cache": cache}
    )
    (tmp_path / "two.yaml").write_text(dump_config(half))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "sbert_train", "fit", "--config", str(tmp_path / "two.yaml")]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("objective  in_batch_negatives") == 1, "one process reports"
    assert "each anchor sees 15 in-batch + 16 hard negatives, gathered from 2 processes" in finished.stdout
    assert "2 processes" in finished.stdout
    assert ("micro-batches of at most 60 tokens, encoded twice" in finished.stdout) == (cache is not None)

    entries = [json.loads(line) for line in (tmp_path / "two" / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries if "loss" in entry] == [1, 2, 3]
    assert [entry["loss"] for entry in entries if "loss" in entry] == pytest.approx(losses(one), rel=1e-3)
    whole, both = (
        json.loads((folder / "report.json").read_text())["training"]
        for folder in (one.folder.root, tmp_path / "two")
    )
    assert both["processes"] == 2 and both["pairs_per_second"] * both["train_runtime"] == pytest.approx(48)
    tokens = [round(one["tokens_per_second"] * one["train_runtime"]) for one in (whole, both)]
    assert tokens[0] <= tokens[1] < 1.5 * tokens[0], "those of both; a text that both read counts twice"

    texts = ["the cat saw the dog", "a bird"]
    two_model = SentenceEncoder.load(tmp_path / "two" / "model")
    np.testing.assert_allclose(
        two_model.encode(texts), SentenceEncoder.load(one.folder.model).encode(texts), atol=2e-3
    )
