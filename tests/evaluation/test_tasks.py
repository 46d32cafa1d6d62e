"""The dict of tasks makes each kind, and names the kinds when asked for another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.kinds import KINDS
from sbert_train.evaluation.tasks import TASKS, Encode, make_task

ROWS = Dataset.from_dict(
    {
        "sentence1": ["a", "b", "c", "d"],
        "sentence2": ["e", "f", "g", "h"],
        "score": [0.0, 1.0, 0.5, 0.0],
        "label": [0, 1, 0, 1],
        "anchor": ["a", "b", "c", "d"],
        "positive": ["e", "f", "g", "h"],
        "negative": [["f"], ["g"], ["h"], ["e"]],
    }
)


def test_the_names_that_a_command_s_help_gives_are_those_of_the_tasks() -> None:
    assert tuple(TASKS) == KINDS


@pytest.mark.parametrize("kind", TASKS)
def test_every_kind_is_made_under_its_name(kind: str) -> None:
    task = make_task(kind, "dev", ROWS)
    assert (task.kind, task.name) == (kind, "dev")


@pytest.mark.parametrize("kind", TASKS)
def test_the_primary_metric_is_one_of_the_task_s_metrics(kind: str, hashed: Encode) -> None:
    task = make_task(kind, "dev", ROWS)
    result = task.evaluate(hashed, lambda u, v: u * v)
    assert result.primary_metric == task.primary_metric
    assert task.primary_metric in result.metrics


@pytest.mark.parametrize("kind", TASKS)
def test_the_sample_gives_every_figure_again_when_each_example_is_drawn_once(
    kind: str, hashed: Encode
) -> None:
    result = make_task(kind, "dev", ROWS).evaluate(hashed, lambda u, v: u * v)
    assert result.sample.size == result.n
    again = result.sample.resampled(list(result.metrics), np.ones((1, result.n)))
    assert again[0] == pytest.approx(list(result.metrics.values()))


@pytest.mark.parametrize("kind", TASKS)
def test_an_empty_set_is_an_error_of_every_kind(kind: str) -> None:
    with pytest.raises(DataError, match="eval set 'dev': expected rows, found none"):
        make_task(kind, "dev", ROWS.select([]))


@pytest.mark.parametrize("kind", TASKS)
def test_a_collapsed_model_is_an_error_of_every_kind(kind: str) -> None:
    def encode(texts: Sequence[str], role: str) -> Any:
        return np.full((len(texts), 8), 0.35, dtype=np.float32)

    with pytest.raises(
        EvaluationError, match=r"eval set 'dev': the model embeds all .* alike, so .* has collapsed"
    ):
        make_task(kind, "dev", ROWS).evaluate(encode, lambda u, v: u * v)


def test_an_unknown_kind_is_an_error_naming_the_known() -> None:
    with pytest.raises(
        EvaluationError, match=r"eval set 'dev': expected a task of sts, retrieval, .*, found 'st'; correct"
    ):
        make_task("st", "dev", ROWS)
