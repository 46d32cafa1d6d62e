"""The triplet task: who wins, what ties and several negatives mean, and sets it cannot judge by."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.metrics import SIMILARITIES
from sbert_train.evaluation.triplets import TripletTask

Angles = Callable[[Mapping[str, float]], Any]
ROWS = {"anchor": ["q", "q", "r"], "positive": ["a", "b", "b"], "negative": [["b"], ["c"], ["a"]]}
ANGLES = {"q": 0, "r": 80, "a": 10, "b": 50, "c": 40}


def test_a_triplet_is_won_where_the_positive_is_nearer(at_angles: Angles) -> None:
    result = TripletTask("tiny", Dataset.from_dict(ROWS)).evaluate(at_angles(ANGLES))
    # q: a at 10 beats b at 50; b at 50 loses to c at 40; r: b at 30 beats a at 70
    assert result.metrics == pytest.approx({f"accuracy_{name}": 2 / 3 for name in SIMILARITIES})
    assert result.primary == result.metrics["accuracy_cosine"]
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "triplet", 3, "triplets")
    assert result.details == {"rows": 3, "triplets": 3}


def test_each_text_is_encoded_in_its_role_and_only_once(at_angles: Angles) -> None:
    encode = at_angles(ANGLES)
    TripletTask("tiny", Dataset.from_dict(ROWS)).evaluate(encode)
    assert encode.calls == [(["q", "r"], "anchor"), (["a", "b"], "positive"), (["b", "c", "a"], "negative")]


def test_similarities_that_disagree_have_figures_of_their_own(lookup: Callable[..., Any]) -> None:
    vectors = {"q": (1.0, 0.0), "near": (1.0, 1.0), "long": (9.0, 1.0)}
    rows = Dataset.from_dict({"anchor": ["q"], "positive": ["near"], "negative": [["long"]]})
    result = TripletTask("tiny", rows).evaluate(lookup(vectors))
    assert result.metrics == {
        "accuracy_cosine": 0.0,
        "accuracy_dot": 0.0,
        "accuracy_euclidean": 1.0,
        "accuracy_manhattan": 1.0,
    }


def test_a_tie_is_not_won(at_angles: Angles) -> None:
    rows = Dataset.from_dict({"anchor": ["q", "q"], "positive": ["a", "a"], "negative": [["twin"], ["far"]]})
    result = TripletTask("tiny", rows).evaluate(at_angles({"q": 0, "a": 33, "twin": 33, "far": 90}))
    assert result.metrics == {f"accuracy_{name}": 0.5 for name in SIMILARITIES}


def test_each_of_several_negatives_makes_a_triplet_and_a_row_is_drawn_as_one(at_angles: Angles) -> None:
    rows = {"anchor": ["q", "r"], "positive": ["a", "b"], "negative": [["b", "c", "a"], ["a", "c", "q"]]}
    result = TripletTask("tiny", Dataset.from_dict(rows)).evaluate(at_angles(ANGLES))
    # q: a at 10 beats b and c and ties with itself; r: b at 30 beats a at 70, c at 40 and q at 80
    assert result.primary == pytest.approx(5 / 6)
    assert (result.n, result.unit) == (2, "rows of 3 triplets")
    assert result.details == {"rows": 2, "triplets": 6}
    counts = np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    assert result.sample.resampled(["accuracy_cosine"], counts)[:, 0] == pytest.approx([2 / 3, 1, 5 / 6])


def test_figures_of_several_negatives_equal_a_plain_loop(hashed: Any) -> None:
    anchors, positives = [f"q{row}" for row in range(20)], [f"p{row}" for row in range(20)]
    negatives = [[f"n{row}", f"m{row}"] for row in range(20)]
    rows = Dataset.from_dict({"anchor": anchors, "positive": positives, "negative": negatives})
    won = []
    for anchor, positive, others in zip(anchors, positives, negatives, strict=True):
        a, p = hashed([anchor, positive], "")
        won += [np.linalg.norm(a - p) < np.linalg.norm(a - n) for n in hashed(others, "")]
    assert 0 < np.mean(won) < 1  # premise
    result = TripletTask("many", rows).evaluate(hashed)
    assert result.metrics["accuracy_euclidean"] == pytest.approx(np.mean(won))


def test_one_anchor_with_one_positive_may_have_all_the_negatives(at_angles: Angles) -> None:
    rows = {"anchor": ["q"] * 2, "positive": ["a"] * 2, "negative": [["b"], ["c"]]}
    assert TripletTask("tiny", Dataset.from_dict(rows)).evaluate(at_angles(ANGLES)).primary == 1.0


def test_a_missing_role_is_an_error_naming_the_set() -> None:
    rows = Dataset.from_dict({"anchor": ["a"], "positive": ["b"]})
    with pytest.raises(DataError, match=r"eval set 'dev': task triplet needs .* map negative under"):
        TripletTask("dev", rows)


@pytest.mark.parametrize(
    ("negatives", "found"), [([["b"], ["c", "d"], ["a"]], "from 1 to 2"), ([[], [], []], "from 0 to 0")]
)
def test_rows_with_other_numbers_of_negatives_are_an_error(negatives: list[list[str]], found: str) -> None:
    with pytest.raises(
        DataError, match=f"eval set 'dev': expected as many negatives in every row, .* {found}"
    ):
        TripletTask("dev", Dataset.from_dict({**ROWS, "negative": negatives}))


def test_a_negative_that_is_a_text_instead_of_a_list_is_an_error() -> None:
    with pytest.raises(
        DataError, match="eval set 'dev': expected a list of texts as negative, found the text 'b'"
    ):
        TripletTask("dev", Dataset.from_dict({**ROWS, "negative": ["b", "c", "a"]}))


def test_a_set_whose_negatives_are_its_positives_is_an_error() -> None:
    rows = {**ROWS, "negative": [["a", "a"], ["b", "b"], ["b", "b"]]}
    with pytest.raises(DataError, match="eval set 'dev': every negative is the positive of its row"):
        TripletTask("dev", Dataset.from_dict(rows))


def test_a_collapsed_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    task = TripletTask("dev", Dataset.from_dict(ROWS))
    with pytest.raises(
        EvaluationError, match="eval set 'dev': the model embeds all 6 positives and negatives alike"
    ):
        task.evaluate(at_angles({**dict.fromkeys("abc", 10), "q": 0, "r": 80}))


def test_a_diverged_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    task = TripletTask("dev", Dataset.from_dict(ROWS))
    with pytest.raises(EvaluationError, match="eval set 'dev': embeddings of role negative: 1 of 3 hold NaN"):
        task.evaluate(at_angles({**ANGLES, "c": np.nan}))
