"""Negatives that are none: rows that would push together what they pull apart.

R rows, K negatives in each.
"""

from dataclasses import dataclass

from sbert_train.data.examination.text_keys import TextKeys, among, pair_keys


@dataclass(frozen=True)
class FalseNegatives:
    """Rows with a negative that is none, but for case, spacing and punctuation.

    Attributes:
        rows: R.
        equal_positive: rows in which a negative is their own positive.
        positive_elsewhere: other rows in which a negative is a positive of the same anchor in another row.
        equal_anchor: rows in which a negative is their anchor.
    """

    rows: int
    equal_positive: int
    positive_elsewhere: int
    equal_anchor: int


def count_false_negatives(keys: TextKeys) -> FalseNegatives:
    """Count them, in rows with anchor, positive and negative."""
    anchors, positives, negatives = (keys.near[role] for role in ("anchor", "positive", "negative"))
    own = (negatives == positives).any(axis=1)
    elsewhere = among(pair_keys(anchors, negatives), pair_keys(anchors, positives)).any(axis=1)
    return FalseNegatives(
        rows=len(anchors),
        equal_positive=int(own.sum()),
        positive_elsewhere=int((elsewhere & ~own).sum()),
        equal_anchor=int((negatives == anchors).any(axis=1).sum()),
    )
