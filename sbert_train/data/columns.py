"""Rows by column: what is read of a data set for a batch, before it is packed.

B rows, K negatives of a row, H dimensions of the backbone, R dimensions of a reference, S scores of a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sbert_train.data.batch import TokenIds

Row = Mapping[str, Any]

TARGETS = ("score", "label")  # numbers that a row may carry beside its texts


@dataclass(frozen=True, eq=False)
class PooledTexts:
    """Texts that a frozen backbone has read.

    Attributes:
        keys: (B,) int64, or (B, K) for `negative`: a hash of each text and its prompt.
        vectors: (B, H) float32, or (B, K, H).
    """

    keys: NDArray[np.int64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Columns:
    """B rows of the same roles.

    Attributes:
        tokens: role -> the token ids of its texts, row by row: B of them, or B * K for `negative`.
        pooled: role -> its texts, where a frozen backbone has read them; there are no tokens then.
        labels: (B,) or (B, S) float32 scores, or (B,) int64 classes; None where the rows have neither.
        objective: the number of the run's objective that these rows are for.
        reference: role -> (B, R) float32, or (B, K, R) for `negative`: vectors of its texts by another encoder.
        rows: B.
    """

    rows: int
    tokens: Mapping[str, Sequence[TokenIds]] = field(default_factory=dict)
    pooled: Mapping[str, PooledTexts] = field(default_factory=dict)
    labels: NDArray[Any] | None = None
    objective: int = 0
    reference: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)

    def shape_of(self, role: str) -> tuple[int, ...]:
        """(B,), or (B, K) for `negative`."""
        if role in self.pooled:
            return self.pooled[role].keys.shape
        return (self.rows, len(self.tokens[role]) // self.rows) if role == "negative" else (self.rows,)


def columns_of(rows: Sequence[Row]) -> Columns:
    """The columns of rows that are given one by one, see `collate`."""
    tokens = {
        role: [ids for row in rows for ids in row[role]]
        if role == "negative"
        else [row[role] for row in rows]
        for role in rows[0]
        if role not in TARGETS
    }
    target = next((name for name in TARGETS if name in rows[0]), None)
    labels = None if target is None else as_labels(target, np.array([row[target] for row in rows]))
    return Columns(len(rows), tokens, labels=labels)


def as_labels(target: str, values: NDArray[Any]) -> NDArray[Any]:
    """The numbers of `score` as float32, those of `label` as int64."""
    return values.astype(np.float32 if target == "score" else np.int64)


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of several data sets of the same roles, one behind the other; the objective is that of the first."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return Columns(
        rows=sum(part.rows for part in parts),
        tokens={role: [ids for part in parts for ids in part.tokens[role]] for role in first.tokens},
        pooled={
            role: PooledTexts(
                np.concatenate([part.pooled[role].keys for part in parts]),
                np.concatenate([part.pooled[role].vectors for part in parts]),
            )
            for role in first.pooled
        },
        labels=None if first.labels is None else np.concatenate([part.labels for part in parts]),
        objective=first.objective,
        reference={
            role: np.concatenate([part.reference[role] for part in parts]) for role in first.reference
        },
    )
