"""A comparison holds every figure with its interval, paired with the first model, and becomes JSON."""

import json
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.compare import Comparison, before_after, compare
from sbert_train.evaluation.encoding import Encode
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.tasks import make_task
from tests.evaluation.intervals import interval, paired_difference

TEXTS = [f"text {number}" for number in range(40)]
STS = Dataset.from_dict(
    {"sentence1": TEXTS[:20], "sentence2": TEXTS[20:], "score": [float(row % 6) for row in range(20)]}
)
PAIRS = Dataset.from_dict({"anchor": TEXTS[:20], "positive": TEXTS[20:]})
TASKS = [make_task("sts", "similar", STS), make_task("retrieval", "search", PAIRS)]


def evaluate(encode: Encode) -> dict[str, TaskResult]:
    return {task.name: task.evaluate(encode) for task in TASKS}


@pytest.fixture
def before(hashed: Encode) -> dict[str, TaskResult]:
    return evaluate(hashed)


@pytest.fixture
def after(hashed: Encode) -> dict[str, TaskResult]:
    # Every second anchor is embedded as its positive is, so that retrieval is better and sts differs.
    partner = dict(zip(TEXTS[:20:2], TEXTS[20::2], strict=True))
    return evaluate(lambda texts, role: hashed([partner.get(text, text) for text in texts], role))


def test_figures_and_differences_are_those_of_the_bootstrap(
    before: dict[str, TaskResult], after: dict[str, TaskResult]
) -> None:
    comparison = compare({"a": before, "b": after}, resamples=200, seed=3)
    assert comparison.models == ("a", "b")
    assert [task.task for task in comparison.tasks] == ["similar", "search"]
    for task in comparison.tasks:
        old, new = before[task.task], after[task.task]
        assert list(task.differences) == ["b"]
        for figures in (task.scores["a"], task.scores["b"], task.differences["b"]):
            assert list(figures) == list(old.metrics)
        for metric in old.metrics:
            draws: dict[str, Any] = {"metric": metric, "resamples": 200, "seed": 3}
            for found, expected in (
                (task.scores["a"][metric], interval(old, **draws)),
                (task.scores["b"][metric], interval(new, **draws)),
                (task.differences["b"][metric], paired_difference(new, old, **draws)),
            ):
                assert astuple(found) == pytest.approx(astuple(expected))
    assert comparison.tasks[1].differences["b"]["ndcg@10"].excludes_zero  # premise: the models do differ


def test_before_after_is_the_comparison_of_two(
    before: dict[str, TaskResult], after: dict[str, TaskResult]
) -> None:
    assert before_after(before, after, resamples=50, seed=1) == compare(
        {"before": before, "after": after}, resamples=50, seed=1
    )


def test_one_model_has_figures_and_no_differences(before: dict[str, TaskResult]) -> None:
    comparison = compare({"only": before}, resamples=50)
    assert [task.differences for task in comparison.tasks] == [{}, {}]


def test_every_model_is_compared_with_the_first(
    before: dict[str, TaskResult], after: dict[str, TaskResult]
) -> None:
    search = compare({"a": before, "b": after, "c": before}, resamples=50).tasks[1]
    assert list(search.differences) == ["b", "c"]
    assert search.differences["c"]["ndcg@10"].value == 0.0
    assert search.differences["b"]["ndcg@10"].value > 0.0


def test_json_has_the_documented_keys_and_plain_values(
    before: dict[str, TaskResult], after: dict[str, TaskResult]
) -> None:
    comparison = compare({"a": before, "b": after}, resamples=50, seed=7)
    written = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert written.keys() == {"models", "baseline", "interval", "tasks"}
    assert (written["models"], written["baseline"]) == (["a", "b"], "a")
    assert written["interval"] == {
        "method": "percentile bootstrap",
        "level": 0.95,
        "resamples": 50,
        "seed": 7,
    }
    similar, search = written["tasks"]
    keys = ["task", "kind", "primary_metric", "n", "unit", "details", "fingerprint", "scores", "differences"]
    keys.append("decisions")
    assert list(similar) == list(search) == keys
    assert similar["decisions"] == {}
    for key in keys:
        assert key in (Comparison.to_json.__doc__ or "")
    assert search["details"] == {"queries": 20, "corpus": 20, "queries_without_relevant": 0}
    figure = search["scores"]["b"]["ndcg@10"]
    assert list(figure) == ["value", "low", "high", "resamples"]
    assert figure["value"] == after["search"].metrics["ndcg@10"]
    assert list(search["differences"]) == ["b"]
    assert list(search["differences"]["b"]["map@100"]) == ["value", "low", "high", "resamples"]


def test_each_model_has_the_decisions_behind_its_figures(hashed: Encode) -> None:
    rows = Dataset.from_dict({"sentence1": TEXTS[:20], "sentence2": TEXTS[20:], "label": [0, 1] * 10})
    task = make_task("pair_classification", "same", rows)
    results = {
        "a": {"same": task.evaluate(hashed)},
        "b": {"same": task.evaluate(lambda texts, role: -(hashed(texts, role) ** 3))},
    }
    found = json.loads(json.dumps(compare(results, resamples=50).to_json()))["tasks"][0]["decisions"]
    assert found == {name: dict(of["same"].decisions) for name, of in results.items()}
    assert found["a"]["f1_dot"] != found["b"]["f1_dot"]  # premise: they are the models' own


@pytest.mark.parametrize("results", [{}, {"a": {}}])
def test_nothing_to_compare_is_an_error(results: dict[str, dict[str, TaskResult]]) -> None:
    with pytest.raises(EvaluationError, match="results of a model on an eval set, found none"):
        compare(results)


def test_models_on_different_eval_sets_are_an_error(before: dict[str, TaskResult]) -> None:
    with pytest.raises(
        EvaluationError, match="expected 'b' on the eval sets similar, search like 'a', found search"
    ):
        compare({"a": before, "b": {"search": before["search"]}})


def test_models_on_different_examples_are_an_error(before: dict[str, TaskResult], hashed: Encode) -> None:
    shorter = {**before, "search": make_task("retrieval", "search", PAIRS.select(range(10))).evaluate(hashed)}
    with pytest.raises(
        EvaluationError, match=r"eval set 'search': .* found 20 queries and 10 queries that differ"
    ):
        compare({"a": before, "b": shorter})


def test_other_texts_or_scores_change_the_fingerprint(hashed: Encode) -> None:
    rescored = STS.remove_columns("score").add_column("score", np.arange(20.0).tolist())
    results = [
        make_task("sts", "similar", rows).evaluate(hashed)
        for rows in (STS, STS, rescored, STS.select(range(19)))
    ]
    prints = [result.fingerprint for result in results]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
