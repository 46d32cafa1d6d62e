"""All that is wrong with a run is told at once, and not one thing per try."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from sbert_train.config import RunConfig, TrainSet, WrongValues
from sbert_train.config.blocks import TreePath
from sbert_train.errors import SbertTrainError
from sbert_train.objectives.registry import ObjectiveSpec
from sbert_train.paths import expanded
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
        lines = dict.fromkeys([*str(error).splitlines(), *_complaints(config)])
        raise type(error)("\n".join(lines)) from error


def what_else_is_wrong(error: WrongValues) -> list[str]:
    """A line for each thing that is wrong with the parts of a run that have no wrong value themselves."""
    config = error.rest
    if config is None or os.environ.get("RANK", "0") != "0":
        return []
    wrong = list(error.wrong)
    # What is misspelt there may have been meant for the eval sets, on which the train block depends.
    if any(len(at) == 2 and at[0] == "data" for at in wrong):
        wrong.append(("train",))
    return [config.without_environment(line) for line in _complaints(config, wrong)]


def _complaints(config: RunConfig, wrong: Sequence[TreePath] = ()) -> list[str]:
    """The lines of what can be looked at by itself, each once, but for what depends on values that are wrong."""
    lines: dict[str, None] = {}
    for blocks, attempt in _attempts(config, wrong):
        if not any(_touches(at, block) for at in wrong for block in blocks):
            lines |= dict.fromkeys(_complaint(attempt))
    return list(lines)


def _touches(at: TreePath, block: TreePath) -> bool:
    """Whether one of two places in a configuration is in the other."""
    return at[: len(block)] == block[: len(at)]


def _attempts(
    config: RunConfig, wrong: Sequence[TreePath]
) -> Iterator[tuple[list[TreePath], Callable[[], object]]]:
    """What can be looked at by itself, behind the blocks of the configuration that it depends on."""
    yield [("train",), ("engine",), ("objective",)], partial(training_arguments, config)
    yield [("output_dir",)], RunFolder(expanded(config.output_dir)).require_ours
    yield [("model",)], partial(base_folder, config)
    objectives = None
    if not any(_touches(at, ("objective",)) for at in wrong):
        with suppress(SbertTrainError):  # told already
            objectives = run_objectives(config)
    for number, one in enumerate(config.data.train):
        read: Callable[[], object] = partial(load, one)
        if objectives is not None:
            read = partial(_load_for, one, objectives.spec_of(number))
        yield [("data", "train", number)], read
    for number, evaluated in enumerate(config.data.eval):
        yield [("data", "eval", number)], partial(load_tasks, [evaluated])


def _load_for(one: TrainSet, spec: ObjectiveSpec) -> object:
    return used_roles(load(one), spec)


def _complaint(attempt: Callable[[], object]) -> list[str]:
    try:
        attempt()
    except SbertTrainError as error:
        return str(error).splitlines()
    except Exception:  # it must not hide what is known; it is met again when that is mended
        return []
    return []
