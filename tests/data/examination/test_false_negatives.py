"""Negatives that are none."""

from sbert_train.data.examination.false_negatives import FalseNegatives, count_false_negatives
from sbert_train.data.examination.text_keys import text_keys
from tests.data.examination.sets import rows_of

ROLES = ["anchor", "positive", "negative"]


def test_each_kind_is_counted_once_a_row() -> None:
    rows = rows_of(
        anchor=["a cat", "A cat!", "a dog", "a fish", "a bird"],
        positive=["the cat", "one cat", "the dog", "the fish", "the bird"],
        negative=[
            ["One Cat", "a mat"],  # a positive of the same anchor in the next row
            ["ONE CAT.", "the cat"],  # its own positive, and one of the row before
            ["a dog", "the fish"],  # its anchor, and a positive of another anchor, as any negative may be
            ["a", "b"],
            ["the cat", "the dog"],
        ],
    )
    assert count_false_negatives(text_keys(rows, ROLES)) == FalseNegatives(
        rows=5, equal_positive=1, positive_elsewhere=1, equal_anchor=1
    )


def test_rows_without_any_have_none() -> None:
    rows = rows_of(anchor=["a", "b"], positive=["c", "d"], negative=[["d"], ["c"]])
    assert count_false_negatives(text_keys(rows, ROLES)) == FalseNegatives(2, 0, 0, 0)
