"""The scale of scores is guessed from what they are, and labels are counted."""

import numpy as np
import pytest

from sbert_train.data.examination.targets import LabelCount, count_labels, describe_scores


@pytest.mark.parametrize(
    ("scores", "guess"),
    [
        ([0.0, 0.5, 1.0], (0, 1)),
        ([0.1, 0.2], (0, 1)),
        ([-0.3, 1.0], (-1, 1)),
        ([0.0, 4.8], (0, 5)),
        ([1.0, 2.0, 5.0], (0, 5)),
        ([0.0, 7.0], (0, 10)),
        ([3.0, 88.0], (0, 100)),
        ([-3.0, 2.0], None),
        ([0.0, 101.0], None),
    ],
)
def test_the_guess_is_the_narrowest_scale_that_holds_them(
    scores: list[float], guess: tuple[float, float] | None
) -> None:
    found = describe_scores(np.array(scores), None)
    assert found.guess == guess and (found.lowest, found.highest) == (min(scores), max(scores))
    assert not found.looks_misread, "there is nothing that it could contradict"


@pytest.mark.parametrize(
    ("score_range", "source", "misread"),
    [
        ((0.0, 5.0), [0.0, 0.4, 1.0], True),
        ((0.0, 10.0), [0.5, 5.0], True),
        ((-1.0, 1.0), [0.0, 1.0], True),
        ((0.0, 5.0), [0.2, 4.6], False),
        ((1.0, 5.0), [1.0, 5.0], False),
        ((0.0, 1.0), [0.0, 0.4], False),
        ((-1.0, 1.0), [-0.8, 1.0], False),
        ((0.0, 7.0), [0.0, 6.0], False),
        ((0.0, 7.0), [0.0, 4.9], False),  # most of it is used
        ((0.0, 4.0), [1.0, 2.0], False),
    ],
)
def test_scores_that_fill_little_of_their_range_and_all_of_a_narrower_scale_look_misread(
    score_range: tuple[float, float], source: list[float], misread: bool
) -> None:
    low, high = score_range
    mapped = (np.array(source) - low) / (high - low)  # as the rows of a set hold them
    found = describe_scores(mapped, score_range)
    assert found.looks_misread is misread
    assert (found.lowest, found.highest) == (min(source), max(source)), "as the source has them"
    assert found.scale == score_range


def test_the_histogram_counts_every_score_in_fifths_of_the_scale() -> None:
    found = describe_scores(np.array([0.0, 0.19, 0.2, 0.5, 1.0, 1.0]), (0.0, 5.0))
    assert found.histogram == (2, 1, 1, 0, 2) and found.mean == pytest.approx(5 * 2.89 / 6)


def test_several_scores_of_a_row_count_each() -> None:
    found = describe_scores(np.array([[0.5, 9.0], [2.0, 3.0]]), None)
    assert sum(found.histogram) == 4 and found.highest == 9.0


def test_scores_on_no_usual_scale_are_counted_from_the_lowest_to_the_highest() -> None:
    assert describe_scores(np.array([-30.0, -10.0, 20.0]), None).scale == (-30.0, 20.0)


def test_labels_are_counted_and_named_where_they_have_names() -> None:
    labels = np.array([2, 0, 2, 2])
    assert count_labels(labels) == (LabelCount(0, None, 1), LabelCount(2, None, 3))
    assert count_labels(labels, ["yes", "maybe"]) == (LabelCount(0, "yes", 1), LabelCount(2, None, 3))
