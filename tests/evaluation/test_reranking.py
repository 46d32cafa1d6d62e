"""The reranking task: whose candidates are ranked, how ties count, and sets it cannot judge by."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sklearn.metrics import average_precision_score

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation import metrics
from sbert_train.evaluation.reranking import RerankingTask

Angles = Callable[[Mapping[str, float]], Any]
LABELLED = {
    "anchor": ["q", "q", "q", "r", "r", "s", "t"],
    "positive": ["a", "b", "c", "a", "d", "a", "b"],
    "label": [0, 1, 1, 1, 0, 0, 1],
}
ANGLES = {"q": 0, "r": 90, "s": 1, "t": 2, "a": 10, "b": 20, "c": 50, "d": 60}


def test_each_anchor_ranks_its_own_candidates_only(at_angles: Angles) -> None:
    encode = at_angles(ANGLES)
    result = RerankingTask("tiny", Dataset.from_dict(LABELLED)).evaluate(encode)
    # q ranks a, b, c (label 0, 1, 1); r ranks d, a (0, 1); s has no relevant candidate, t no other
    assert encode.calls == [(["q", "r"], "anchor"), (["a", "b", "c", "d"], "positive")]
    assert result.metrics == pytest.approx({"map": ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 2, "mrr@10": 1 / 2})
    assert result.primary == result.metrics["map"]
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "reranking", 2, "queries")
    assert result.details == {
        "queries": 2,
        "candidates": 5,
        "queries_without_relevant": 1,
        "queries_without_irrelevant": 1,
    }


def test_negatives_are_candidates_that_are_not_relevant(at_angles: Angles) -> None:
    rows = {
        "anchor": ["q", "r", "q"],
        "positive": ["b", "a", "c"],
        "negative": [["a", "d"], ["d", "c"], ["a", "d"]],
    }
    result = RerankingTask("tiny", Dataset.from_dict(rows)).evaluate(at_angles(ANGLES))
    # q ranks a, b, c, d (0, 1, 1, 0); r ranks d, c, a (0, 0, 1)
    assert result.details["candidates"] == 7
    assert result.metrics == pytest.approx(
        {"map": ((1 / 2 + 2 / 3) / 2 + 1 / 3) / 2, "mrr@10": (1 / 2 + 1 / 3) / 2}
    )


def test_a_candidate_that_one_row_calls_relevant_is_relevant(at_angles: Angles) -> None:
    for labels in ([1, 0, 0], [0, 1, 0]):
        rows = {"anchor": ["q"] * 3, "positive": ["a", "a", "b"], "label": labels}
        result = RerankingTask("tiny", Dataset.from_dict(rows)).evaluate(at_angles(ANGLES))
        assert (result.metrics["map"], result.details["candidates"]) == (1.0, 2)


def test_nobody_gains_by_a_tie(at_angles: Angles) -> None:
    rows = {"anchor": ["q"] * 4, "positive": ["one", "two", "near", "far"], "label": [1, 0, 0, 1]}
    angles = {"q": 0, "one": 30, "two": 30, "near": 5, "far": 80}
    result = RerankingTask("tiny", Dataset.from_dict(rows)).evaluate(at_angles(angles))
    # near; then one and two at once, so that the first relevant has rank 3; then far
    assert result.metrics == pytest.approx({"map": (1 / 3 + 2 / 4) / 2, "mrr@10": 1 / 3})


def test_a_relevant_candidate_beyond_rank_ten_counts_for_the_map_only(at_angles: Angles) -> None:
    texts = [f"t{rank}" for rank in range(1, 13)]
    angles = {"q": 0.0, **{text: 5.0 * rank for rank, text in enumerate(texts, start=1)}}
    for rank, expected in ((10, 1 / 10), (11, 0.0)):
        rows = {
            "anchor": ["q"] * 12,
            "positive": texts,
            "label": [int(place == rank) for place in range(1, 13)],
        }
        metrics = RerankingTask("tiny", Dataset.from_dict(rows)).evaluate(at_angles(angles)).metrics
        assert metrics == pytest.approx({"map": 1 / rank, "mrr@10": expected})


def test_figures_do_not_depend_on_the_blocks_and_equal_sklearn(
    hashed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    rows = {
        "anchor": [f"q{row % 20}" for row in range(200)],
        "positive": [f"text {row}" for row in generator.integers(0, 150, 200)],
        "label": generator.integers(0, 2, 200).tolist(),
    }
    task = RerankingTask("many", Dataset.from_dict(rows))
    result = task.evaluate(hashed)
    unit = {
        text: hashed([text], "")[0] / np.linalg.norm(hashed([text], "")[0])
        for text in task.candidates + task.queries
    }
    expected, start = [], 0
    for query, size in zip(task.queries, task.sizes, strict=True):
        own = slice(start, start + size)
        scores = [unit[query] @ unit[text] for text in task.candidates[own]]
        expected.append(average_precision_score(task.relevant[own], scores))
        start += size
    assert result.metrics["map"] == pytest.approx(np.mean(expected))
    monkeypatch.setattr(metrics, "PAIRS_PER_BLOCK", 7)
    assert task.evaluate(hashed).metrics == result.metrics


def test_the_sample_holds_one_value_per_query(at_angles: Angles) -> None:
    result = RerankingTask("tiny", Dataset.from_dict(LABELLED)).evaluate(at_angles(ANGLES))
    again = result.sample.resampled(["map"], np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    assert again[:, 0] == pytest.approx([result.metrics["map"], (1 / 2 + 2 / 3) / 2, 1 / 2])


def test_a_missing_role_is_an_error_naming_the_set() -> None:
    with pytest.raises(DataError, match=r"eval set 'qa': task reranking needs .* map anchor, positive under"):
        RerankingTask("qa", Dataset.from_dict({"question": ["q"], "answer": ["a"]}))


def test_a_label_other_than_zero_and_one_is_an_error() -> None:
    with pytest.raises(
        DataError, match=r"eval set 'qa': expected label 1 \(relevant\) or 0 \(not\), found 3"
    ):
        RerankingTask("qa", Dataset.from_dict({**LABELLED, "label": [3] * 7}))


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ({**LABELLED, "label": [0] * 7}, "of 4, 4 have no relevant and 0 no irrelevant one"),
        ({**LABELLED, "label": [1] * 7}, "of 4, 0 have no relevant and 4 no irrelevant one"),
        ({"anchor": ["q", "r"], "positive": ["a", "b"]}, "of 2, 0 have no relevant and 2 no irrelevant one"),
    ],
)
def test_a_set_without_an_anchor_of_both_kinds_is_an_error(rows: dict[str, Any], counts: str) -> None:
    with pytest.raises(
        DataError, match=f"eval set 'qa': expected anchors with relevant and irrelevant .* {counts}"
    ):
        RerankingTask("qa", Dataset.from_dict(rows))


def test_a_collapsed_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    encode = at_angles({**dict.fromkeys("abcd", 10), "q": 0, "r": 90})
    with pytest.raises(EvaluationError, match="eval set 'qa': the model embeds all 5 candidates alike"):
        RerankingTask("qa", Dataset.from_dict(LABELLED)).evaluate(encode)


def test_a_diverged_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    encode = at_angles({**ANGLES, "r": np.nan})
    with pytest.raises(EvaluationError, match="eval set 'qa': embeddings of role anchor: 1 of 2 hold NaN"):
        RerankingTask("qa", Dataset.from_dict(LABELLED)).evaluate(encode)
