"""Runs that end before their time, and the bytes that they end with."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sbert_train.config import RunConfig
from sbert_train.training import checkpoints
from sbert_train.training.fit import FitResult, fit
from sbert_train.training.trainer import SentenceTrainer
from tests.training.runs import write_scored, write_triplets

EVERY_TWO: dict[str, Any] = {"num_train_epochs": 2, "save_strategy": "steps", "save_steps": 2}
KEEP_ALL: dict[str, Any] = {**EVERY_TWO, "eval_strategy": "no", "save_total_limit": 20}


class Killed(BaseException):
    """What nothing handles, as nothing handles kill -9."""


@contextmanager
def killed_in_step(number: int) -> Iterator[None]:
    """The process as good as dies while it computes a step; the premise is that it gets there."""
    with pytest.raises(Killed), _killed_where(lambda step: step == number):
        yield


@contextmanager
def killed_in_any_step() -> Iterator[None]:
    """The premise is that no step is trained."""
    with _killed_where(lambda step: True):
        yield


@contextmanager
def _killed_where(chosen: Callable[[int], bool]) -> Iterator[None]:
    inner = SentenceTrainer.training_step

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if chosen(self.state.global_step + 1):
            raise Killed
        return inner(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SentenceTrainer, "training_step", training_step)
        yield


def trained(config: RunConfig, **options: Any) -> tuple[FitResult, list[str]]:
    """The run of a configuration, and what it said."""
    lines: list[str] = []
    return fit(config, say=lines.append, **options), lines


def weights_of(model: Path) -> dict[str, bytes]:
    """The bytes of every file of weights of a model."""
    found = {file.relative_to(model).as_posix(): file.read_bytes() for file in model.rglob("*.safetensors")}
    assert "model.safetensors" in found
    return found


def moved(config: RunConfig, folder: Path) -> RunConfig:
    """The same run in another folder."""
    return RunConfig.model_validate(config.model_dump() | {"output_dir": str(folder)})


def scored(folder: Path) -> dict[str, Any]:
    """An eval set of pairs with scores."""
    return {"name": "pairs", "task": "sts", "source": str(write_scored(folder)), "score_range": [0, 5]}


def stopping_early(folder: Path, **train: Any) -> dict[str, Any]:
    """The blocks of a run that is evaluated every other step and stops early, with the best model of four steps ago."""
    return {
        "data": {"train": [{"source": str(write_triplets(folder))}], "eval": [scored(folder)]},
        "train": {
            **EVERY_TWO,
            "eval_strategy": "steps",
            "eval_steps": 2,
            "learning_rate": 0.02,
            "early_stopping_patience": 2,
            "num_train_epochs": 4,
            **train,
        },
    }


def flip(path: Path) -> None:
    """One bit of a file is another."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def checkpoints_of(settings: RunConfig) -> Path:
    """Where a run keeps them."""
    return Path(settings.output_dir) / "checkpoints"


def rewrite(settings: RunConfig, step: int, change: Callable[[Path], object]) -> None:
    """A checkpoint, changed, with a manifest to which it is whole."""
    folder = checkpoints_of(settings)
    checkpoints.begin_stage(folder, step)
    stage = checkpoints.stage_of(folder, step)
    for file in (folder / f"checkpoint-{step}").iterdir():
        if file.name != checkpoints.MANIFEST:
            shutil.copyfile(file, stage / file.name)
    change(stage)
    assert checkpoints.damage(checkpoints.seal(folder, step)) is None


def first_new_step(settings: RunConfig, **options: Any) -> tuple[int, list[str]]:
    """The step with which a run goes on, and what it said."""
    result, lines = trained(settings, **options)
    resumed = json.loads(result.folder.report.read_text())["training"]["resumed_from"]
    return (resumed[-1] if resumed else 0) + 1, lines
