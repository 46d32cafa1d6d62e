"""Tokenised rows on disk -> rows in memory: read when a batch asks for them, straight from Arrow into numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch.utils.data import Dataset

from sbert_train.data.batch import text_key
from sbert_train.data.collator import OBJECTIVE, REFERENCE, TARGETS, Row
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


class MixedRows(Dataset[Row]):
    """Several data sets one behind the other."""

    def __init__(self, sets: Sequence[SetRows]) -> None:
        self._sets = list(sets)
        # The texts of a pooled set are not read: its rows are their vectors.
        self._tables = [
            one.tokens.select_columns(
                [c for c in one.tokens.column_names if c in TARGETS or not one.pooled]
            ).with_format("arrow")
            for one in sets
        ]
        self._starts = np.cumsum([0] + [len(one.tokens) for one in sets])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def pooled_texts(self) -> int:
        """The number of texts whose vectors stand for them."""
        return sum(len(one.pooled.table) for one in self._sets if one.pooled is not None)

    def __getitem__(self, index: int) -> Row:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        """The rows at these places, in this order (the method that torch's DataLoader calls with a batch)."""
        places = np.asarray(indices)
        owners = np.searchsorted(self._starts, places, side="right") - 1
        rows: list[Row] = [{}] * len(places)
        for owner in np.unique(owners):
            chosen = np.flatnonzero(owners == owner)
            for place, row in zip(
                chosen, self._rows_of(owner, places[chosen] - self._starts[owner]), strict=True
            ):
                rows[place] = row
        return rows

    def _rows_of(self, owner: int, indices: NDArray[np.int64]) -> list[Row]:
        """Rows of one set."""
        one, table = self._sets[owner], self._tables[owner]
        columns: dict[str, Any] = {OBJECTIVE: [one.objective] * len(indices)}
        if one.pooled is not None:
            columns |= {role: one.pooled.texts(role, indices) for role in one.pooled.places}
        if table.column_names:
            read = table[indices]
            columns |= {role: _values(read[role]) for role in read.column_names}
        if one.reference is not None:
            vectors = {role: one.reference.vectors(role, indices) for role in one.reference.places}
            columns[REFERENCE] = [{role: vectors[role][i] for role in vectors} for i in range(len(indices))]
        return [{role: values[i] for role, values in columns.items()} for i in range(len(indices))]


def text_keys(rows: datasets.Dataset) -> NDArray[np.int64]:
    """(rows, texts of a row) int64, equal for equal texts within this process.

    Args:
        rows: tokenised rows, with the same number of texts in each.
    """
    keys: list[list[int]] = []
    for table in rows.with_format("arrow").iter(batch_size=1_000):
        columns = [_values(table[role]) for role in table.column_names if role not in TARGETS]
        keys.extend(
            [hash(ids.tobytes()) for text in texts for ids in _each(text)]
            for texts in zip(*columns, strict=True)
        )
    return np.array(keys, dtype=np.int64)


def token_keys(rows: datasets.Dataset) -> dict[str, NDArray[np.int64]]:
    """Role -> the key of each text, (R,), or (R, K) for `negative`; the same in every process.

    Args:
        rows: R tokenised rows.
    """
    found: dict[str, list[list[int]]] = {role: [] for role in rows.column_names if role not in TARGETS}
    for table in rows.with_format("arrow").iter(batch_size=1_000):
        for role, keys in found.items():
            keys.extend([text_key(ids.tobytes()) for ids in _each(text)] for text in _values(table[role]))
    arrays = {role: np.array(keys, dtype=np.int64) for role, keys in found.items()}
    return {role: keys if role == "negative" else keys[:, 0] for role, keys in arrays.items()}


def _each(text: Any) -> list[NDArray[np.int32]]:
    return text if isinstance(text, list) else [text]


def _values(column: pa.ChunkedArray | pa.Array) -> Any:
    """Numbers as an array; lists of numbers as a list of arrays (views, nothing is copied); and so on inwards."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
        return array.to_numpy(zero_copy_only=False)
    inner, ends = _values(array.values), array.offsets.to_numpy()
    return [inner[a:b] for a, b in pairwise(ends)]
