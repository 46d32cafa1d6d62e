"""What stands for each text of a set when texts are compared: as it is, and normalised.

R rows, K texts of a role in each row: 1, but for `negative`.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

_CHUNK_ROWS = 10_000
_NO_WORD = re.compile(r"[\W_]+")
_PAIR = np.uint64(0x9E3779B97F4A7C15)


def normalised(text: str) -> str:
    """A text without what hardly anybody would call a difference: case, spacing, punctuation, forms of one letter.

    >>> normalised("The  CAT—sleeps!"), normalised("ﬁve №"), normalised("?!")
    ('the cat sleeps', 'five no', '?!')
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    folded = plain.casefold()
    return _NO_WORD.sub(" ", folded).strip() or folded.strip()


@dataclass(frozen=True, eq=False)
class TextKeys:
    """64 bits for each text, equal for equal texts.

    Attributes:
        exact: role -> (R, K), of the texts as they are.
        near: role -> (R, K), of the texts normalised.
    """

    exact: Mapping[str, Keys]
    near: Mapping[str, Keys]


def text_keys(rows: datasets.Dataset, roles: Sequence[str]) -> TextKeys:
    """The keys of the texts in these roles of some rows."""
    exact: dict[str, list[Keys]] = {role: [] for role in roles}
    near: dict[str, list[Keys]] = {role: [] for role in roles}
    table: pa.Table = rows.select_columns(list(roles)).with_format("arrow")[:]
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = table.slice(start, _CHUNK_ROWS)
        for role in roles:
            column = chunk[role].combine_chunks()
            nested = pa.types.is_list(column.type)
            texts = (column.flatten() if nested else column).to_pylist()
            shape = (len(column), -1)
            exact[role].append(_keys(texts).reshape(shape))
            near[role].append(_keys([normalised(text) for text in texts]).reshape(shape))
    return TextKeys(
        {role: np.concatenate(parts) for role, parts in exact.items()},
        {role: np.concatenate(parts) for role, parts in near.items()},
    )


def _keys(texts: Sequence[str]) -> Keys:
    """(N,) of N texts."""
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def pair_keys(one: Keys, other: Keys) -> Keys:
    """Keys of pairs of texts, the same in either order."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    return low * _PAIR + high


def row_keys(keys: Mapping[str, Keys]) -> Keys:
    """(R,) keys of whole rows: equal where every role has the same texts."""
    columns = np.concatenate(list(keys.values()), axis=1)
    found = np.zeros(len(columns), dtype=np.uint64)
    for column in columns.T:
        found = found * _PAIR + column
    return found


def count_distinct(keys: Keys) -> int:
    """How many different keys (N,) hold; of millions, sorting tells it sooner than np.unique."""
    return int(np.count_nonzero(np.diff(np.sort(keys)))) + 1


def among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    """Which keys, of any shape, are some of those known; of millions, sorting tells it sooner than np.isin."""
    ordered = np.sort(known, axis=None)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[places] == keys
    return found
