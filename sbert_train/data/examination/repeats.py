"""How often a set says the same thing, and whether it contradicts itself.

R rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sbert_train.data.examination.text_keys import TextKeys, count_distinct, row_keys


@dataclass(frozen=True)
class Repeats:
    """Texts and rows that stand more than once in a set.

    Attributes:
        texts: in all roles of all rows.
        distinct_texts: different ones among them.
        near_texts: how many of the different ones equal another but for case, spacing and punctuation.
        rows: that equal an earlier one in every text.
        near_rows: more rows that do, but for case, spacing and punctuation.
        contradicting: rows whose texts stand in another row with another score or label.
    """

    texts: int
    distinct_texts: int
    near_texts: int
    rows: int
    near_rows: int
    contradicting: int


def count_repeats(keys: TextKeys, target: NDArray[Any] | None = None) -> Repeats:
    """Count them.

    Args:
        target: (R,) or (R, S), the scores or the label of each row, where there are some.
    """
    exact = np.concatenate([column.ravel() for column in keys.exact.values()])
    near = np.concatenate([column.ravel() for column in keys.near.values()])
    distinct, first = np.unique(exact, return_index=True)
    exact_rows, near_rows = row_keys(keys.exact), row_keys(keys.near)
    count, unlike = len(exact_rows), count_distinct(exact_rows)
    return Repeats(
        texts=len(exact),
        distinct_texts=len(distinct),
        near_texts=len(distinct) - count_distinct(near[first]),
        rows=count - unlike,
        near_rows=unlike - count_distinct(near_rows),
        contradicting=0 if target is None else _contradicting(near_rows, target),
    )


def _contradicting(rows: NDArray[np.uint64], target: NDArray[Any]) -> int:
    """How many rows belong to a group of equal keys whose targets differ."""
    _, group = np.unique(rows, return_inverse=True)
    targets = target.reshape(len(target), -1)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    low = np.minimum.reduceat(targets[order], starts, axis=0)
    high = np.maximum.reduceat(targets[order], starts, axis=0)
    differs = (low != high).any(axis=1)
    return int(np.bincount(group)[differs].sum())
