"""The retrieval task: what its corpus is, who is relevant to whom, and sets it cannot judge by."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.metrics import RANKING_METRICS
from sbert_train.evaluation.retrieval import RetrievalTask

Angles = Callable[[Mapping[str, float]], Any]


def pairs(**more: Any) -> Dataset:
    return Dataset.from_dict({"anchor": ["q1", "q2", "q1"], "positive": ["a", "b", "c"], **more})


def test_the_corpus_is_all_distinct_positives_and_an_anchor_may_have_several(at_angles: Angles) -> None:
    encode = at_angles({"q1": 0, "q2": 90, "a": 10, "b": 70, "c": 50})
    result = RetrievalTask("tiny", pairs()).evaluate(encode)
    assert encode.calls == [(["q1", "q2"], "anchor"), (["a", "b", "c"], "positive")]
    # q1 finds a, c, b (relevant: a, c); q2 finds b first
    assert result.metrics == pytest.approx({**dict.fromkeys(RANKING_METRICS, 1.0), "recall@1": 0.75})
    assert result.details == {"queries": 2, "corpus": 3, "queries_without_relevant": 0}
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "retrieval", 2, "queries")
    assert result.primary == result.metrics["ndcg@10"]


def test_negatives_join_the_corpus_as_distractors(at_angles: Angles) -> None:
    encode = at_angles({"q1": 0, "q2": 90, "a": 10, "b": 70, "c": 50, "n": 5, "m": 180})
    rows = pairs(negative=[["n", "b"], ["m", "n"], ["n", "n"]])
    result = RetrievalTask("tiny", rows).evaluate(encode)
    assert encode.calls[1] == (["a", "n", "b", "m", "c"], "positive")  # in the order of the rows
    assert result.details["corpus"] == 5
    # q1 finds n, a, c: the negative first; q2 finds b first
    assert result.metrics["accuracy@1"] == 0.5
    assert result.metrics["mrr@10"] == pytest.approx((1 / 2 + 1) / 2)
    assert result.metrics["map@100"] == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2)


def test_a_negative_that_another_row_calls_positive_is_relevant(at_angles: Angles) -> None:
    rows = Dataset.from_dict({"anchor": ["q", "q"], "positive": ["a", "b"], "negative": [["b"], ["c"]]})
    result = RetrievalTask("tiny", rows).evaluate(at_angles({"q": 0, "b": 1, "a": 2, "c": 90}))
    assert result.metrics["map@100"] == 1.0


def test_labelled_rows_are_relevant_where_the_label_is_one(at_angles: Angles) -> None:
    rows = Dataset.from_dict(
        {
            "anchor": ["q1", "q1", "q2", "q2", "q3"],
            "positive": ["a", "b", "b", "c", "a"],
            "label": [0, 1, 1, 0, 0],
        }
    )
    encode = at_angles({"q1": 0, "q2": 90, "q3": 45, "a": 10, "b": 20, "c": 80})
    result = RetrievalTask("tiny", rows).evaluate(encode)
    # q3 has no answer; q1 finds a, b; q2 finds c, b
    assert encode.calls[0] == (["q1", "q2"], "anchor")
    assert result.details == {"queries": 2, "corpus": 3, "queries_without_relevant": 1}
    assert result.metrics["accuracy@1"] == 0.0
    assert result.metrics["mrr@10"] == 0.5


def test_texts_of_one_embedding_rank_in_the_order_of_the_rows(at_angles: Angles) -> None:
    angles = {"q": 0, "a": 20, "b": 20, "c": 20, "far": 90}
    rows = {"anchor": ["q"] * 4, "positive": ["a", "b", "c", "far"]}
    ranks = []
    for relevant in range(3):
        labelled = Dataset.from_dict({**rows, "label": [int(row == relevant) for row in range(4)]})
        ranks.append(1 / RetrievalTask("tiny", labelled).evaluate(at_angles(angles)).metrics["mrr@10"])
    assert ranks == pytest.approx([1, 2, 3])


def test_the_sample_holds_one_value_per_query_and_gives_the_figures_again(hashed: Any) -> None:
    rows = Dataset.from_dict(
        {"anchor": [f"q{i}" for i in range(30)], "positive": [f"p{i}" for i in range(30)]}
    )
    result = RetrievalTask("many", rows).evaluate(hashed)
    assert 0 < result.primary < 1  # premise: some are found, some are not
    again = result.sample.resampled(list(result.metrics), np.ones((1, 30)))
    assert again[0] == pytest.approx(list(result.metrics.values()))


def test_a_missing_role_is_an_error_naming_the_set_what_is_needed_and_what_was_found() -> None:
    with pytest.raises(
        DataError,
        match=r"eval set 'qa': task retrieval needs the roles anchor, positive, found "
        r"columns question, answer; map anchor, positive under `columns`",
    ):
        RetrievalTask("qa", Dataset.from_dict({"question": ["q"], "answer": ["a"]}))


def test_an_empty_set_is_an_error() -> None:
    with pytest.raises(DataError, match="eval set 'qa': expected rows, found none"):
        RetrievalTask("qa", Dataset.from_dict({"anchor": [], "positive": []}))


def test_a_label_other_than_zero_and_one_is_an_error() -> None:
    with pytest.raises(
        DataError, match=r"eval set 'qa': expected label 1 \(relevant\) or 0 \(not\), found 2"
    ):
        RetrievalTask("qa", pairs(label=[0, 1, 2]))


def test_a_set_without_any_relevant_text_is_an_error() -> None:
    with pytest.raises(DataError, match="eval set 'qa': none of 2 anchors has a relevant text"):
        RetrievalTask("qa", pairs(label=[0, 0, 0]))


def test_a_corpus_of_one_text_is_an_error() -> None:
    rows = Dataset.from_dict({"anchor": ["q1", "q2"], "positive": ["a", "a"]})
    with pytest.raises(DataError, match="eval set 'qa': expected a corpus of at least 2 different texts"):
        RetrievalTask("qa", rows)


def test_a_negative_that_is_a_text_instead_of_a_list_is_an_error() -> None:
    with pytest.raises(
        DataError, match="eval set 'qa': expected a list of texts as negative, found the text 'n'"
    ):
        RetrievalTask("qa", pairs(negative=["n", "m", "o"]))


def test_a_collapsed_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    encode = at_angles(dict.fromkeys(["q1", "q2", "a", "b", "c"], 30))
    with pytest.raises(
        EvaluationError, match="eval set 'qa': the model embeds all 3 texts of the corpus alike"
    ):
        RetrievalTask("qa", pairs()).evaluate(encode)


def test_a_diverged_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    encode = at_angles({"q1": 0, "q2": 0, "a": np.nan, "b": 1, "c": 2})
    with pytest.raises(EvaluationError, match="eval set 'qa': embeddings of role positive: 1 of 3 hold NaN"):
        RetrievalTask("qa", pairs()).evaluate(encode)
