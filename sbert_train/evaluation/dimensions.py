"""Tasks on the first entries of the embeddings, too: how much a model loses when its vectors are cut.

A model that was trained for it keeps most of its quality in the first d entries (Kusupati et al. 2022, "Matryoshka
Representation Learning").

Shapes: N texts, D dimensions of the model.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.encoding import Classify, Encode
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.tasks import Task


def evaluate_tasks(
    tasks: Sequence[Task], encode: Encode, *, dims: Sequence[int] = (), classify: Classify | None = None
) -> dict[str, TaskResult]:
    """The results of all tasks by name, with those of `evaluate_at` for each.

    Raises EvaluationError where a task bears the name of another's result at a dimension, or as the tasks do.
    """
    results: dict[str, TaskResult] = {}
    for task in tasks:
        for name, result in evaluate_at(task, encode, dims, classify).items():
            if name in results:
                raise EvaluationError(
                    f"two results would be called {name!r}, one of them at a number of dimensions; rename an eval set"
                )
            results[name] = result
    return results


def evaluate_at(
    task: Task, encode: Encode, dims: Sequence[int], classify: Classify | None = None
) -> dict[str, TaskResult]:
    """The result of a task under its own name, and for each d of dims below D under `name_at(task.name, d)`.

    Those are the same task on the first d entries of every embedding, which are not scaled anew: similarities that
    are not the cosine see their length. Texts are encoded once for all of it. A task that judges the model's
    classifier has its own result only, for the classifier reads all D entries.

    Raises EvaluationError if a d is below 1 or above D, or as the task does.
    """
    embedded: dict[tuple[str, tuple[str, ...]], NDArray[np.float32]] = {}

    def encode_once(texts: Sequence[str], role: str) -> NDArray[np.float32]:
        key = (role, tuple(texts))
        if key not in embedded:
            embedded[key] = encode(texts, role)
        return embedded[key]

    results = {task.name: task.evaluate(encode_once, classify)}
    width = next(iter(embedded.values())).shape[1]
    check_dims(dims, width)
    for d in () if task.uses_classifier else dict.fromkeys(d for d in dims if d < width):

        def encode_short(texts: Sequence[str], role: str, d: int = d) -> NDArray[np.float32]:
            return encode_once(texts, role)[:, :d]

        name = name_at(task.name, d)
        try:
            results[name] = replace(task.evaluate(encode_short), task=name)
        except EvaluationError as error:
            raise EvaluationError(f"on the first {d} dimensions: {error}") from error
    return results


def name_at(task: str, d: int) -> str:
    """The name of a task's result on the first d entries.

    >>> name_at("stsb", 64)
    'stsb_dim64'
    """
    return f"{task}_dim{d}"


def check_dims(dims: Sequence[int], width: int) -> None:
    """Raise EvaluationError unless every d of dims is a number of entries that embeddings of width D have."""
    for d in dims:
        if not 1 <= d <= width:
            raise EvaluationError(
                f"expected dims from 1 to {width}, the dimensions of the model, found {d}; leave it out"
            )
