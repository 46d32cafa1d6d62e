"""Runs that end before their time, and the bytes that they end with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sbert_train.config import RunConfig
from sbert_train.training.fit import FitResult, fit
from sbert_train.training.trainer import SentenceTrainer


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
