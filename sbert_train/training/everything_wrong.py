"""All that is wrong with a run is told at once, and not one thing per try."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from sbert_train.config import RunConfig, WrongValues
from sbert_train.config.blocks import TreePath
from sbert_train.errors import ConfigError, SbertTrainError
from sbert_train.training.arguments import training_arguments
from sbert_train.training.data import used_roles
from sbert_train.training.objectives import run_objectives
from sbert_train.training.prepare import base_folder, load, load_tasks
from sbert_train.training.run_folder import RunFolder


@contextmanager
def everything_wrong_told(config: RunConfig) -> Iterator[None]:
    """Around what reads the parts of a run one after the other: its first error is raised together with those that the
    others would meet.

    Raises:
        SbertTrainError: of the type of the first one; a line for each.
    """
    try:
        yield
    except SbertTrainError as error:
        if os.environ.get("RANK", "0") != "0":
            raise
        raise type(error)("\n".join(_with_others(error, config))) from error


def tell_what_else_is_wrong(error: WrongValues) -> NoReturn:
    """Raise the error with what is wrong besides, with the parts of the run that have no wrong value themselves."""
    if error.rest is None:
        raise error
    with error.rest.hiding_environment():
        raise ConfigError("\n".join(_with_others(error, error.rest, error.wrong))) from error


def _with_others(error: SbertTrainError, config: RunConfig, wrong: Sequence[TreePath] = ()) -> list[str]:
    """The lines of an error and those of what can be looked at by itself, each once."""
    lines = dict.fromkeys(str(error).splitlines())
    for blocks, attempt in _attempts(config):
        if not any(at[: len(block)] == block[: len(at)] for at in wrong for block in blocks):
            lines |= dict.fromkeys(_complaint(attempt))
    return list(lines)


def _attempts(config: RunConfig) -> Iterator[tuple[list[TreePath], Callable[[], object]]]:
    """What can be looked at by itself, behind the blocks of the configuration that it depends on."""
    yield [("train",), ("engine",)], partial(training_arguments, config)
    yield [("output_dir",)], RunFolder(Path(config.output_dir).expanduser()).require_ours
    yield [("model",)], partial(base_folder, config)
    objectives = None
    with suppress(SbertTrainError):  # told already
        objectives = run_objectives(config)
    for number, one in enumerate(config.data.train):
        block: TreePath = ("data", "train", number)
        if objectives is None:
            yield [block], partial(load, one)
        else:
            read = partial(lambda one, spec: used_roles(load(one), spec), one, objectives.spec_of(number))
            yield [block, ("objective",)], read
    for number, evaluated in enumerate(config.data.eval):
        yield [("data", "eval", number)], partial(load_tasks, [evaluated])


def _complaint(attempt: Callable[[], object]) -> list[str]:
    try:
        attempt()
    except SbertTrainError as error:
        return str(error).splitlines()
    return []
