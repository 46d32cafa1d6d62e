"""A task on the first entries of the embeddings is the task of a model that gives only these, encoded once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.dimensions import evaluate_at, evaluate_tasks
from sbert_train.evaluation.encoding import Encode
from sbert_train.evaluation.tasks import TASKS, make_task

TEXTS = [f"text {number}" for number in range(40)]
ROWS = Dataset.from_dict(
    {
        "sentence1": TEXTS[:20],
        "sentence2": TEXTS[20:],
        "score": [float(row % 6) for row in range(20)],
        "label": [row % 2 for row in range(20)],
        "anchor": TEXTS[:20],
        "positive": TEXTS[20:],
        "negative": [[TEXTS[row]] for row in range(19, -1, -1)],
    }
)


def short(encode: Encode, d: int) -> Encode:
    return lambda texts, role: encode(texts, role)[:, :d]


def classify(u: Any, v: Any) -> Any:
    return u[:, :2] * v[:, :2]


@pytest.mark.parametrize("kind", TASKS)
def test_each_dimension_gives_the_result_of_a_model_of_that_dimension(kind: str, hashed: Encode) -> None:
    task = make_task(kind, "dev", ROWS)
    results = evaluate_at(task, hashed, (5, 2), classify)
    assert results["dev"] == task.evaluate(hashed, classify)
    if task.uses_classifier:
        assert list(results) == ["dev"], "its classifier reads all dimensions"
        return
    assert list(results) == ["dev", "dev_dim5", "dev_dim2"]
    for d in (5, 2):
        expected, found = task.evaluate(short(hashed, d)), results[f"dev_dim{d}"]
        assert found.task == f"dev_dim{d}"
        assert (found.metrics, found.kind, found.fingerprint) == (
            expected.metrics,
            expected.kind,
            expected.fingerprint,
        )
    assert len({result.primary for result in results.values()}) > 1  # premise: the dimensions matter


def test_texts_are_encoded_once_for_all_dimensions(hashed: Encode) -> None:
    calls: list[tuple[str, int]] = []

    def encode(texts: Sequence[str], role: str) -> Any:
        calls.append((role, len(texts)))
        return hashed(texts, role)

    evaluate_at(make_task("retrieval", "dev", ROWS), encode, (6, 4, 2))
    assert calls == [("anchor", 10), ("positive", 40)]  # those with label 1; all texts


def test_a_text_that_has_two_roles_is_encoded_in_both(hashed: Encode) -> None:
    rows = Dataset.from_dict({"sentence1": TEXTS[:4], "sentence2": TEXTS[:4], "score": [0.0, 1.0, 2.0, 3.0]})

    def encode(texts: Sequence[str], role: str) -> Any:
        return hashed([role + text for text in texts], role)

    task = make_task("sts", "dev", rows)
    assert evaluate_at(task, encode, (4,))["dev_dim4"].metrics == task.evaluate(short(encode, 4)).metrics


def test_the_model_s_own_dimension_is_the_task_itself(hashed: Encode) -> None:
    assert list(evaluate_at(make_task("sts", "dev", ROWS), hashed, (8, 4, 4))) == ["dev", "dev_dim4"]


@pytest.mark.parametrize("d", [0, -1, 9])
def test_a_dimension_that_the_model_does_not_have_is_an_error_that_names_it(d: int, hashed: Encode) -> None:
    with pytest.raises(
        EvaluationError, match=f"expected dims from 1 to 8, the dimensions of the model, found {d};"
    ):
        evaluate_at(make_task("sts", "dev", ROWS), hashed, (4, d))


def test_embeddings_that_differ_only_beyond_the_first_entries_are_an_error_that_says_so(
    hashed: Encode,
) -> None:
    def encode(texts: Sequence[str], role: str) -> Any:
        return np.concatenate([np.ones((len(texts), 2), dtype=np.float32), hashed(texts, role)], axis=1)

    with pytest.raises(
        EvaluationError, match="on the first 2 dimensions: eval set 'dev': the model embeds all"
    ):
        evaluate_at(make_task("sts", "dev", ROWS), encode, (4, 2))


def test_all_tasks_have_their_results_by_name(hashed: Encode) -> None:
    tasks = [
        make_task("sts", "one", ROWS),
        make_task("nli", "two", ROWS),
        make_task("retrieval", "three", ROWS),
    ]
    results = evaluate_tasks(tasks, hashed, dims=(4,), classify=classify)
    assert list(results) == ["one", "one_dim4", "two", "three", "three_dim4"]
    assert [result.task for result in results.values()] == list(results)
    assert list(evaluate_tasks(tasks[:1], hashed)) == ["one"]


def test_a_task_named_as_another_at_a_dimension_is_an_error(hashed: Encode) -> None:
    tasks = [make_task("sts", "dev", ROWS), make_task("sts", "dev_dim4", ROWS)]
    with pytest.raises(EvaluationError, match="two results would be called 'dev_dim4'"):
        evaluate_tasks(tasks, hashed, dims=(4,))
    assert list(evaluate_tasks(tasks, hashed, dims=(2,)))  # premise: otherwise they can stand side by side
