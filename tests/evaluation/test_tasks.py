"""The dict of tasks makes each kind, and names the kinds when asked for another."""

import pytest
from datasets import Dataset

from sbert_train.errors import EvaluationError
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


def test_an_unknown_kind_is_an_error_naming_the_known() -> None:
    with pytest.raises(
        EvaluationError, match=r"eval set 'dev': expected a task of sts, retrieval, .*, found 'st'; correct"
    ):
        make_task("st", "dev", ROWS)
