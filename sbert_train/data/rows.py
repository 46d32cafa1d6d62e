"""Tokenised rows on disk -> the rows of a batch: straight from the memory-mapped Arrow cache into numpy.

R rows of a data set, K negatives of a row, B rows of a batch, S scores of a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch.utils.data import Dataset

from sbert_train.data.columns import TARGETS, Columns, as_labels, joined
from sbert_train.data.token_column import TokenColumn
from sbert_train.data.vectors import RowVectors


@dataclass(frozen=True)
class SetRows:
    """What the rows of a data set hold.

    Attributes:
        tokens: the tokenised rows.
        objective: the number of the objective that they are for.
        pooled: what a frozen backbone makes of their texts, in place of their tokens.
        reference: what another encoder makes of their texts, beside them.
    """

    tokens: datasets.Dataset
    objective: int = 0
    pooled: RowVectors | None = None
    reference: RowVectors | None = None


class MixedRows(Dataset[Columns]):
    """Several data sets one behind the other."""

    def __init__(self, sets: Sequence[SetRows]) -> None:
        self._sets = tuple(sets)
        self._readers = [_Reader(one) for one in sets]
        self._starts = np.cumsum([0] + [len(one.tokens) for one in sets])

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker that is started anew maps the files itself, rather than be sent what is in them."""
        return MixedRows, (self._sets,)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def pooled_texts(self) -> int:
        """The number of texts whose vectors stand for them."""
        return sum(len(one.pooled.table) for one in self._sets if one.pooled is not None)

    def text_lengths(self) -> dict[str, NDArray[np.int32]]:
        """Role -> how many tokens each of its texts has, special tokens included, over all sets."""
        found: dict[str, list[NDArray[np.int32]]] = {}
        for one in self._sets:
            for role, column in token_columns(one.tokens).items():
                found.setdefault(role, []).append(column.lengths)
        return {role: np.concatenate(lengths) for role, lengths in found.items()}

    @property
    def tokens_per_row(self) -> float:
        """The mean number of tokens of all texts of a row; 0 where vectors stand for them."""
        return sum(reader.tokens for reader in self._readers) / len(self)

    def __getitem__(self, index: int) -> Columns:
        return self.__getitems__([index])

    def __getitems__(self, indices: Sequence[int]) -> Columns:
        """The rows at these places, in this order (the method that torch's DataLoader calls with a batch)."""
        places = np.asarray(indices)
        owners = np.searchsorted(self._starts, places, side="right") - 1
        # A batch holds the rows of a set next to each other, so that these are as few as it has sets.
        turns = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(places)]
        return joined(
            [self._readers[owners[a]].read(places[a:b] - self._starts[owners[a]]) for a, b in pairwise(turns)]
        )


class _Reader:
    """Reads rows of one data set."""

    def __init__(self, rows: SetRows) -> None:
        self._rows = rows
        # The texts of a pooled set are not read: its rows are their vectors.
        self._tokens = {} if rows.pooled else token_columns(rows.tokens)
        target = next((name for name in TARGETS if name in rows.tokens.column_names), None)
        self._labels = None if target is None else _labels(target, _columns(rows.tokens, [target])[target])

    @property
    def tokens(self) -> int:
        """Of all texts together."""
        return sum(int(column.lengths.sum()) for column in self._tokens.values())

    def read(self, indices: NDArray[np.int64]) -> Columns:
        """The rows at these places of the set."""
        pooled, reference = self._rows.pooled, self._rows.reference
        return Columns(
            rows=len(indices),
            tokens={role: column.texts(indices) for role, column in self._tokens.items()},
            pooled={role: pooled.texts(role, indices) for role in pooled.places} if pooled else {},
            labels=None if self._labels is None else self._labels[indices],
            objective=self._rows.objective,
            reference={role: reference.vectors(role, indices) for role in reference.places}
            if reference
            else {},
        )


def token_columns(rows: datasets.Dataset) -> dict[str, TokenColumn]:
    """Role -> its texts, of tokenised rows."""
    roles = [role for role in rows.column_names if role not in TARGETS]
    return {role: TokenColumn.of(column) for role, column in _columns(rows, roles).items()}


def text_keys(rows: datasets.Dataset) -> NDArray[np.int64]:
    """(R, texts of a row) int64, equal for equal texts; the same in every process.

    Args:
        rows: R tokenised rows, with the same number of texts in each.
    """
    return np.concatenate([column.keys() for column in token_columns(rows).values()], axis=1)


def token_keys(rows: datasets.Dataset) -> dict[str, NDArray[np.int64]]:
    """Role -> the key of each text, (R,), or (R, K) for `negative`; those of `text_keys`.

    Args:
        rows: R tokenised rows.
    """
    keys = {role: column.keys() for role, column in token_columns(rows).items()}
    return {role: found if role == "negative" else found[:, 0] for role, found in keys.items()}


def _columns(rows: datasets.Dataset, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Whole columns, memory-mapped as they are unless the rows were shuffled or filtered after they were written."""
    table: pa.Table = rows.select_columns(list(names)).with_format("arrow")[:]
    return {name: table[name] for name in names}


def _labels(target: str, column: pa.ChunkedArray) -> NDArray[Any]:
    """(R,), or (R, S) where a row has several scores."""
    array = column.combine_chunks()
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return as_labels(target, array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), -1))
    return as_labels(target, array.to_numpy(zero_copy_only=False))
