"""A set that comes without a task gets the one that its roles speak for, or an error that says what is open."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from sbert_train.errors import DataError
from sbert_train.evaluation.adhoc import load_eval_sets, task_for
from sbert_train.evaluation.tasks import TASKS


def rows(*roles: str, **columns: Any) -> Dataset:
    return Dataset.from_dict({**{role: ["x", "y", "z"] for role in roles}, **columns})


SCORES, LABELS, CLASSES = {"score": [0.1, 0.2, 0.3]}, {"label": [0, 1, 1]}, {"label": [0, 1, 2]}
NEGATIVES = {"negative": [["n"]] * 3}


@pytest.mark.parametrize(
    ("found", "task"),
    [
        (rows("sentence1", "sentence2", **SCORES), "sts"),
        (rows("sentence1", "sentence2", **SCORES, **CLASSES), "sts"),
        (rows("anchor", "positive"), "retrieval"),
        (rows("anchor", "positive", **NEGATIVES), "retrieval"),
        (rows("anchor", "positive", **LABELS), "retrieval"),
        (rows("sentence1", "sentence2", **LABELS), "pair_classification"),
        (rows("sentence1", **CLASSES), "clustering"),
    ],
)
def test_roles_speak_for_a_task(found: Dataset, task: str) -> None:
    assert task_for("dev", found) == task


def test_labels_of_more_classes_leave_the_task_open() -> None:
    with pytest.raises(
        DataError,
        match=r"eval set 'dev': the labels of its pairs are 0, 1, 2, and only 0 and 1 .* with --task, such",
    ):
        task_for("dev", rows("sentence1", "sentence2", **CLASSES))


def test_roles_of_no_task_are_an_error_that_says_what_each_task_needs() -> None:
    with pytest.raises(DataError, match="eval set 'dev': no task fits the roles sentence1 ") as error:
        task_for("dev", rows("sentence1"))
    assert all(f"{kind} needs {', '.join(task.roles)}" in str(error.value) for kind, task in TASKS.items())


def test_a_task_that_is_named_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("sentence1,sentence2,score,label\na,b,0.5,1\nc,d,0.7,0\n")
    assert [task.kind for task in load_eval_sets({"pairs": str(file)})[1]] == ["sts"]
    _, named = load_eval_sets({"pairs": str(file)}, task="pair_classification")
    assert [(task.kind, task.name) for task in named] == [("pair_classification", "pairs")]
