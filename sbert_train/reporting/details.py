"""What a page shows of an eval set beyond its figures: similarities, gold against predicted, and examples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbert_train.evaluation.changes import Changes, changes, most_changed
from sbert_train.evaluation.metrics import Array
from sbert_train.evaluation.results import Cosines, TaskResult, Texts
from sbert_train.evaluation.samples import PairSample
from sbert_train.evaluation.tasks import Task
from sbert_train.reporting.html import shortened

EXAMPLES = 10
POINTS = 2_000
CHARACTERS = 300


@dataclass(frozen=True)
class Example:
    """An example that changed."""

    texts: Texts
    """Cut to what fits a page."""
    before: float
    after: float
    gold: float | None
    gain: float


@dataclass(frozen=True)
class Cloud:
    """Gold and similarity of some pairs."""

    pairs: int
    """Of the whole set."""
    gold: Sequence[float]
    before: Sequence[float]
    after: Sequence[float]


@dataclass(frozen=True)
class SetDetails:
    """An eval set under the base and the model that was kept."""

    name: str
    kind: str
    cosines: tuple[Cosines, Cosines] | None
    """Before and after; None where the task does not judge two texts."""
    cloud: Cloud | None
    """None but for gold scores."""
    figure: str
    """What `before` and `after` of the examples are: a similarity, a metric, or `class`; empty without examples."""
    better: tuple[Example, ...]
    worse: tuple[Example, ...]


def details_of(task: Task, before: TaskResult, after: TaskResult) -> SetDetails:
    """The details of an eval set from the results of both models."""
    found = changes(before, after)
    better, worse = ([], []) if found is None else most_changed(found.gain, EXAMPLES)
    one, other = before.cosines, after.cosines
    return SetDetails(
        name=task.name,
        kind=task.kind,
        cosines=None if one is None or other is None else (one, other),
        cloud=_cloud(found) if found is not None and isinstance(before.sample, PairSample) else None,
        figure=found.figure if found is not None else "",
        better=tuple(_example(task, found, number) for number in better),
        worse=tuple(_example(task, found, number) for number in worse),
    )


def evenly(size: int, most: int) -> Array:
    """The numbers of at most so many of size things, spread evenly, the same each time."""
    return np.arange(size) if size <= most else np.arange(most) * size // most


def _cloud(found: Changes) -> Cloud:
    assert found.gold is not None
    chosen = evenly(len(found.gold), POINTS)
    return Cloud(
        len(found.gold),
        found.gold[chosen].tolist(),
        found.before[chosen].tolist(),
        found.after[chosen].tolist(),
    )


def _example(task: Task, found: Changes | None, number: int) -> Example:
    assert found is not None
    return Example(
        texts=tuple((role, shortened(text, CHARACTERS)) for role, text in task.texts_of(number)),
        before=float(found.before[number]),
        after=float(found.after[number]),
        gold=None if found.gold is None else float(found.gold[number]),
        gain=float(found.gain[number]),
    )
