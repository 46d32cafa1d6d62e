"""A run that was interrupted ends as if it had not been: every test compares the bytes of all weights."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbert_train.config import RunConfig
from sbert_train.objectives.registry import OBJECTIVES
from sbert_train.training.trainer import SentenceTrainer
from tests.tiny import WORDS
from tests.training.interruptions import (
    EVERY_TWO,
    Killed,
    killed_in_any_step,
    killed_in_step,
    moved,
    scored,
    stopping_early,
    trained,
    weights_of,
)
from tests.training.objective_runs import block_for
from tests.training.runs import config, sentences, write_csv, write_triplets

Blocks = Callable[[Path, Path], dict[str, Any]]

SLOW = pytest.mark.slow
NO_EVAL: dict[str, Any] = {"eval_strategy": "no", "load_best_model_at_end": False}
HEAD = {"dim": 16, "dropout": 0.1}


def data(*sets: Path, **blocks: Any) -> dict[str, Any]:
    return {"train": [{"source": str(one)} for one in sets], **blocks}


def triplets(folder: Path, count: int = 48, seed: int = 0) -> dict[str, Any]:
    return data(write_triplets(folder, count, seed))


def several(folder: Path, strategy: str, datasets_per_batch: int = 1) -> dict[str, Any]:
    mixing = {"strategy": strategy, "datasets_per_batch": datasets_per_batch}
    return data(write_triplets(folder, 32, 0), write_triplets(folder, 20, 1), mixing=mixing)


def repeated(folder: Path) -> dict[str, Any]:
    """Rows of which many share their positive, so that batches without duplicates have to be looked for."""
    rows = [(one[0], f"a {WORDS[i % 8 + 5]}") for i, one in enumerate(sentences(48))]
    return data(write_csv(folder / "repeated.csv", ("anchor", "positive"), rows))


def of_objective(name: str) -> Blocks:
    return lambda folder, base: block_for(name, folder, base)


RUNS: dict[str, Blocks] = {
    **{f"objective {name}": of_objective(name) for name in OBJECTIVES},
    "learnt scale": lambda f, b: {
        "data": triplets(f),
        "objective": {"name": "in_batch_negatives", "learnable_scale": True},
    },
    "head": lambda f, b: {"data": triplets(f), "model": {"base": str(b), "head": HEAD}},
    "two heads": lambda f, b: {
        "data": triplets(f),
        "model": {"base": str(b), "head": {**HEAD, "shared": False}},
    },
    "lora": lambda f, b: {"data": triplets(f), "model": {"base": str(b), "lora": {"r": 4, "dropout": 0.2}}},
    "frozen backbone": lambda f, b: {
        "data": triplets(f),
        "model": {"base": str(b), "head": HEAD, "freeze": "backbone"},
    },
    "frozen embeddings": lambda f, b: {
        "data": triplets(f),
        "model": {"base": str(b), "freeze": "embeddings"},
    },
    "mixed sets": lambda f, b: {"data": several(f, "proportional")},
    "weighted sets": lambda f, b: {"data": several(f, "weighted")},
    "sets in turns": lambda f, b: {"data": several(f, "round_robin")},
    "sets that share batches": lambda f, b: {"data": several(f, "proportional", 2)},
    "no duplicates": lambda f, b: {"data": repeated(f)},
    "accumulation": lambda f, b: {
        "data": triplets(f),
        "train": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
    },
    "gradient cache": lambda f, b: {"data": triplets(f), "engine": {"gradient_cache": 64}},
    "matryoshka": lambda f, b: {
        "data": triplets(f),
        "objective": {"name": "in_batch_negatives", "matryoshka_dims": [32, 8]},
    },
    "bf16": lambda f, b: {"data": triplets(f), "engine": {"precision": "bf16"}},
    "packed": lambda f, b: {"data": triplets(f), "engine": {"packing": "packed"}},
    "sorted": lambda f, b: {"data": triplets(f), "engine": {"packing": "sorted"}},
    "padded": lambda f, b: {"data": triplets(f), "engine": {"packing": "padded"}},
    "workers": lambda f, b: {"data": triplets(f), "train": {"dataloader_num_workers": 2}},
    "checkpointed activations": lambda f, b: {"data": triplets(f), "train": {"gradient_checkpointing": True}},
    "plateau schedule": lambda f, b: {
        "data": {**triplets(f), "eval": [scored(f)]},
        "train": {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "steps", "eval_steps": 2},
    },
    "other optimizer": lambda f, b: {
        "data": triplets(f),
        "train": {"optim": "sgd", "optim_args": "momentum=0.9"},
    },
}
"""What a run may consist of -> the blocks that ask for it."""
FAST = ("objective softmax", "lora", "frozen backbone", "weighted sets", "accumulation")
"""Those that a quick look should not do without."""


def settings_of(kind: str, folder: Path, base: Path) -> RunConfig:
    blocks = RUNS[kind](folder, base)
    no_eval = {} if blocks["data"].get("eval") else NO_EVAL
    return config(folder, base, **{**blocks, "train": {**EVERY_TWO, **no_eval, **blocks.get("train", {})}})


@pytest.mark.parametrize("kind", [kind if kind in FAST else pytest.param(kind, marks=SLOW) for kind in RUNS])
def test_whatever_trains_a_run_that_was_killed_ends_with_the_same_bytes(
    kind: str, tmp_path: Path, tiny_model: Path
) -> None:
    """Once within an epoch, and once behind its end."""
    settings = settings_of(kind, tmp_path, tiny_model)
    whole, _ = trained(settings)
    steps = json.loads(whole.folder.report.read_text())["training"]["steps"]
    boundary = steps // 2
    expected = weights_of(whole.folder.model)
    assert expected["model.safetensors"] != (tiny_model / "model.safetensors").read_bytes() or kind == (
        "frozen backbone"
    ), "it trained something"

    interrupted = moved(settings, tmp_path / "killed")
    with killed_in_step(4):
        trained(interrupted)
    assert not (tmp_path / "killed" / "model").exists()
    with killed_in_step(boundary + boundary % 2 + 1):
        _, lines = trained(interrupted)
    resumed, lines = trained(interrupted)
    assert any(line.startswith(f"resume     from step {boundary + boundary % 2},") for line in lines)
    assert weights_of(resumed.folder.model) == expected
    report = json.loads(resumed.folder.report.read_text())["training"]
    assert report["resumed_from"] == [2, boundary + boundary % 2]


@pytest.mark.parametrize("limit", [pytest.param(1, marks=SLOW), 2, pytest.param(None, marks=SLOW)])
def test_early_stopping_and_the_best_model_are_taken_up(
    limit: int | None, tmp_path: Path, tiny_model: Path
) -> None:
    settings = config(tmp_path, tiny_model, **stopping_early(tmp_path, save_total_limit=limit))
    whole, _ = trained(settings)
    report = json.loads(whole.folder.report.read_text())["training"]
    last, best = report["steps"], report["best_step"]
    assert last < 24, "it stopped early"
    assert best == last - 4, "two evaluations without a better one"
    expected = weights_of(whole.folder.model)

    for killed in (last, last - 1):
        folder = tmp_path / f"killed{killed}"
        with killed_in_step(killed):
            trained(moved(settings, folder))
        resumed, _ = trained(moved(settings, folder))
        found = json.loads(resumed.folder.report.read_text())["training"]
        assert (found["steps"], found["best_step"]) == (last, best)
        assert found["resumed_from"] == [last - 2]
        assert weights_of(resumed.folder.model) == expected


def test_a_run_that_had_stopped_early_trains_no_further(tmp_path: Path, tiny_model: Path) -> None:
    """Killed behind its last checkpoint, before the model was written."""
    settings = config(tmp_path, tiny_model, **stopping_early(tmp_path))
    whole, _ = trained(settings)
    expected, log = weights_of(whole.folder.model), whole.folder.log.read_text()
    shutil.rmtree(whole.folder.model)
    whole.folder.report.unlink()
    with killed_in_any_step():
        _, lines = trained(settings)
    assert any(line.endswith("so that nothing is left to train") for line in lines)
    assert weights_of(whole.folder.model) == expected
    assert [line for line in log.splitlines() if "eval_" in line] == [
        line for line in whole.folder.log.read_text().splitlines() if "eval_" in line
    ]


@pytest.mark.parametrize("evaluate", [pytest.param("steps", marks=SLOW), "epoch"])
def test_an_epochs_evaluation_is_in_its_checkpoint(evaluate: str, tmp_path: Path, tiny_model: Path) -> None:
    """A save at the last step of an epoch waits for the evaluation at its end, which may find the best model."""
    train = {
        "num_train_epochs": 3,
        "learning_rate": 0.02,
        "save_strategy": evaluate,
        "eval_strategy": evaluate,
    }
    if evaluate == "steps":
        train |= {"save_steps": 3, "eval_steps": 3}
    settings = config(tmp_path, tiny_model, train=train)
    whole, _ = trained(settings)
    for killed in (7, 13):
        folder = tmp_path / f"killed{killed}"
        with killed_in_step(killed):
            trained(moved(settings, folder))
        state = json.loads((folder / f"checkpoints/checkpoint-{killed - 1}/trainer_state.json").read_text())
        assert state["best_metric"] is not None and state["log_history"][-1]["step"] == killed - 1
        evaluated = [one["step"] for one in state["log_history"] if "eval_pairs_spearman_cosine" in one]
        assert evaluated[-1] == killed - 1
        resumed, _ = trained(moved(settings, folder))
        assert weights_of(resumed.folder.model) == weights_of(whole.folder.model)


def test_a_save_at_the_end_waits_for_the_evaluation_of_the_epoch_that_it_cuts_short(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = {"save_strategy": "steps", "save_steps": 4, "eval_strategy": "epoch", "learning_rate": 0.02}
    blocks = {**train, "max_steps": 8, "load_best_model_at_end": False}
    settings = config(tmp_path, tiny_model, train=blocks)
    whole, _ = trained(settings)
    folder, inner = tmp_path / "killed", SentenceTrainer.evaluate

    def evaluate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 8:
            raise Killed
        return inner(self, *args, **kwargs)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(SentenceTrainer, "evaluate", evaluate)
        trained(moved(settings, folder))
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["checkpoint-4"]
    resumed, _ = trained(moved(settings, folder))
    assert weights_of(resumed.folder.model) == weights_of(whole.folder.model)
    evaluated = [json.loads(line) for line in resumed.folder.log.read_text().splitlines()]
    assert [one["step"] for one in evaluated if "eval_pairs_spearman_cosine" in one] == [0, 6, 8]


def test_the_log_and_the_report_count_on(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train={**EVERY_TWO, "eval_strategy": "steps", "eval_steps": 2})
    whole, _ = trained(settings)
    folder = tmp_path / "killed"
    with killed_in_step(6):
        trained(moved(settings, folder))
    with (folder / "log.jsonl").open("a") as log:
        log.write('{"step": 5, "lo')  # what a process may leave that dies while it writes
    resumed, _ = trained(moved(settings, folder))

    def without_times(text: str) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in text.splitlines()]
        return [{k: v for k, v in one.items() if "train_" not in k} for one in entries]

    assert without_times(resumed.folder.log.read_text()) == without_times(whole.folder.log.read_text())
    one, other = (json.loads(run.folder.report.read_text())["training"] for run in (whole, resumed))
    assert other["mean_loss"] == pytest.approx(one["mean_loss"], rel=1e-12)
    assert other["pairs_per_second"] * other["train_runtime"] == pytest.approx(96)
    assert (one["resumed_from"], other["resumed_from"]) == ([], [4])


def test_a_run_goes_on_after_its_folder_was_moved(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, **stopping_early(tmp_path))
    whole, _ = trained(settings)
    last = json.loads(whole.folder.report.read_text())["training"]["steps"]
    with killed_in_step(last):
        trained(moved(settings, tmp_path / "before"))
    (tmp_path / "before").rename(tmp_path / "after")
    resumed, _ = trained(moved(settings, tmp_path / "after"))
    assert weights_of(resumed.folder.model) == weights_of(whole.folder.model)
    assert not (tmp_path / "before").exists()


def test_a_finished_run_has_nothing_left_to_train(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model)
    first, _ = trained(settings)
    expected = weights_of(first.folder.model)
    measured = json.loads(first.folder.report.read_text())["training"]
    (first.folder.model / "notes.txt").write_text("mine")
    with killed_in_any_step():
        again, lines = trained(settings)
    (resumed,) = [line for line in lines if line.startswith("resume     from step 6,")]
    assert resumed.endswith(
        "it was finished, so that nothing is left to train: it is evaluated and written again"
    )
    assert weights_of(again.folder.model) == expected
    found = json.loads(again.folder.report.read_text())["training"]
    for figure in ("seconds_to_first_step", "input_share"):
        assert found[figure] == measured[figure] > 0, "that of the steps that were trained"
    aside = first.folder.root / "model.before-1"
    assert any(line.startswith(f"kept       {aside}: what lay in ") for line in lines)
    assert (aside / "notes.txt").read_text() == "mine"
    assert again.comparison is not None and again.comparison.to_json() == first.comparison.to_json()  # type: ignore[union-attr]


@pytest.mark.parametrize("length", [{"max_steps": 8}, {"num_train_epochs": 1.5}])
@pytest.mark.parametrize("evaluate", ["no", "epoch"])
def test_a_run_that_ends_within_an_epoch_has_nothing_left_to_train(
    evaluate: str, length: dict[str, Any], tmp_path: Path, tiny_model: Path
) -> None:
    """Trainer would train another step each time."""
    train = {
        **EVERY_TWO,
        "lr_scheduler_type": "constant",
        "eval_strategy": evaluate,
        "load_best_model_at_end": False,
    }
    settings = config(tmp_path, tiny_model, train={**train, **length})
    whole, _ = trained(settings)
    expected, log = weights_of(whole.folder.model), whole.folder.log.read_text()
    steps = json.loads(whole.folder.report.read_text())["training"]["steps"]
    assert steps in (8, 9)
    with killed_in_any_step():
        again, _ = trained(settings)
    assert weights_of(again.folder.model) == expected
    report = json.loads(again.folder.report.read_text())["training"]
    assert (report["steps"], report["resumed_from"]) == (steps, [])
    kept = [line.partition('"train_runtime"')[0] for line in log.splitlines()]
    assert [
        line.partition('"train_runtime"')[0] for line in again.folder.log.read_text().splitlines()
    ] == kept

    with killed_in_step(steps):
        trained(moved(settings, tmp_path / "killed"))
    resumed, _ = trained(moved(settings, tmp_path / "killed"))
    assert weights_of(resumed.folder.model) == expected


def test_a_best_model_between_two_saves_is_saved(tmp_path: Path, tiny_model: Path) -> None:
    train = {"save_steps": 4, "eval_steps": 1, "learning_rate": 0.02, "num_train_epochs": 2}
    settings = config(tmp_path, tiny_model, train=train)
    whole, _ = trained(settings)
    best = json.loads(whole.folder.report.read_text())["training"]["best_step"]
    assert best % 4, "it is none that is saved anyway"
    with killed_in_step(10):
        trained(moved(settings, tmp_path / "killed"))
    resumed, _ = trained(moved(settings, tmp_path / "killed"))
    assert weights_of(resumed.folder.model) == weights_of(whole.folder.model)


def test_a_finished_run_of_which_only_the_best_is_saved_has_nothing_left_either(
    tmp_path: Path, tiny_model: Path
) -> None:
    train = {"save_strategy": "best", "eval_strategy": "epoch", "num_train_epochs": 3, "learning_rate": 0.1}
    settings = config(tmp_path, tiny_model, train=train)
    whole, _ = trained(settings)
    report = json.loads(whole.folder.report.read_text())["training"]
    assert report["best_step"] < report["steps"], "it is not saved as the best"
    expected = weights_of(whole.folder.model)
    with killed_in_any_step():
        again, _ = trained(settings)
    assert weights_of(again.folder.model) == expected


def test_a_longer_training_goes_on_from_the_end_of_a_shorter(tmp_path: Path, tiny_model: Path) -> None:
    """With a constant learning rate nothing depends on how long it was going to be."""
    train = {"lr_scheduler_type": "constant", "eval_strategy": "no", "save_strategy": "epoch"}
    short = config(tmp_path, tiny_model, train={**train, "num_train_epochs": 1})
    long = config(tmp_path, tiny_model, train={**train, "num_train_epochs": 2})
    whole, _ = trained(moved(long, tmp_path / "whole"))
    trained(short)
    result, lines = trained(long, allow_changes=["train.num_train_epochs"])
    assert "changed    train.num_train_epochs: 1 in checkpoint-6, 2 now" in lines
    assert weights_of(result.folder.model) == weights_of(whole.folder.model)


def test_a_changed_schedule_takes_effect(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learning rate of the first step is that of the new schedule, and so are the weight decay and what is
    logged."""
    train = {**EVERY_TWO, **NO_EVAL, "warmup_steps": 0}
    before = config(tmp_path, tiny_model, train=train)
    with killed_in_step(7):
        trained(before)
    changed = {"learning_rate": 5e-4, "weight_decay": 0.3, "num_train_epochs": 3, "logging_steps": 3}
    after = config(tmp_path, tiny_model, train={**train, **changed})
    used, decays, inner = [], [], SentenceTrainer.training_step

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        used.append(self.optimizer.param_groups[0]["lr"])
        decays.append({group["weight_decay"] for group in self.optimizer.param_groups})
        return inner(self, *args, **kwargs)

    monkeypatch.setattr(SentenceTrainer, "training_step", training_step)
    result, _ = trained(after, allow_changes=[f"train.{name}" for name in changed])
    log = [json.loads(line) for line in result.folder.log.read_text().splitlines()]
    rates = {entry["step"]: entry["learning_rate"] for entry in log if "learning_rate" in entry}
    assert rates[6] == pytest.approx(1e-3 * 7 / 12), "that of the first part"
    assert used == pytest.approx([5e-4 * left / 18 for left in range(12, 0, -1)]), "from the first step on"
    assert [step for step in rates if step > 6] == [9, 12, 15, 18]
    assert [rates[step] for step in (9, 12, 18)] == pytest.approx([5e-4 * left / 18 for left in (10, 7, 1)])
    assert decays == [{0.3, 0.0}] * 12, "biases and norms do not decay"
