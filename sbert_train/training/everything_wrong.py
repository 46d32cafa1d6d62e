"""All that is wrong with a run is told at once, and not one thing per try."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from sbert_train.config import RunConfig
from sbert_train.errors import SbertTrainError
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
        lines = dict.fromkeys(str(error).splitlines())
        for attempt in _attempts(config):
            lines |= dict.fromkeys(_complaint(attempt))
        raise type(error)("\n".join(lines)) from error


def _attempts(config: RunConfig) -> Iterator[Callable[[], object]]:
    """What can be looked at by itself."""
    yield partial(training_arguments, config)
    yield RunFolder(Path(config.output_dir).expanduser()).require_ours
    yield partial(base_folder, config)
    objectives = None
    with suppress(SbertTrainError):  # told already
        objectives = run_objectives(config)
    for number, one in enumerate(config.data.train):
        if objectives is None:
            yield partial(load, one)
        else:
            yield partial(lambda one, spec: used_roles(load(one), spec), one, objectives.spec_of(number))
    for evaluated in config.data.eval:
        yield partial(load_tasks, [evaluated])


def _complaint(attempt: Callable[[], object]) -> list[str]:
    try:
        attempt()
    except SbertTrainError as error:
        return str(error).splitlines()
    return []
