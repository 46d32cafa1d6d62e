"""Tokenised rows on disk -> rows in memory: read when a batch asks for them, straight from Arrow into numpy."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch.utils.data import Dataset

from sbert_train.data.collator import TARGETS, Row


class MixedRows(Dataset[Row]):
    """Several tokenised data sets one behind the other."""

    def __init__(self, sets: Sequence[datasets.Dataset]) -> None:
        self._sets = [rows.with_format("arrow") for rows in sets]
        self._starts = np.cumsum([0] + [len(rows) for rows in sets])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> Row:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        """The rows at these places, in this order (the method that torch's DataLoader calls with a batch)."""
        places = np.asarray(indices)
        owners = np.searchsorted(self._starts, places, side="right") - 1
        rows: list[Row] = [{}] * len(places)
        for owner in np.unique(owners):
            chosen = np.flatnonzero(owners == owner)
            table = self._sets[owner][places[chosen] - self._starts[owner]]
            columns = {role: _values(table[role]) for role in table.column_names}
            for i, place in enumerate(chosen):
                rows[place] = {role: values[i] for role, values in columns.items()}
        return rows


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


def _each(text: Any) -> list[NDArray[np.int32]]:
    return text if isinstance(text, list) else [text]


def _values(column: pa.ChunkedArray | pa.Array) -> Any:
    """Numbers as an array; lists of numbers as a list of arrays (views, nothing is copied); and so on inwards."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
        return array.to_numpy(zero_copy_only=False)
    inner, ends = _values(array.values), array.offsets.to_numpy()
    return [inner[a:b] for a, b in pairwise(ends)]
