"""Vectors of the texts of a data set, computed once and kept on disk: by a frozen backbone, a teacher or a guide.

V distinct texts, R rows, K negatives of a row, D dimensions.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from numpy.typing import NDArray

from sbert_train.data.cache import cache_folder, complete_or_absent, fingerprint
from sbert_train.data.columns import PooledTexts
from sbert_train.data.roles import TEXT_ROLES

Vectors = NDArray[np.float32]
VectorsOf = Callable[[Sequence[str], str], Vectors]
"""(texts, one of the roles that they stand in) -> (texts, D)."""

FILE = "vectors.npy"


@dataclass(frozen=True, eq=False)
class RowVectors:
    """The vectors of the texts of a data set, by row and role.

    Attributes:
        table: (V, D) float32, memory-mapped.
        places: role -> (R,) int64, or (R, K) for `negative`: where the vector of a text is.
        keys: role -> what stands for a text, in the shape of its places; equal for texts that are the same to a model,
            also of other data sets. Empty where nobody asks for texts.
        projection: (D, E) float32, applied to what is read; None to leave it as it is.
    """

    table: Vectors
    places: Mapping[str, NDArray[np.int64]]
    keys: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    projection: Vectors | None = None

    def vectors(self, role: str, rows: NDArray[np.int64]) -> Vectors:
        """(n, D), or (n, K, D) for `negative`, of n rows."""
        found: Vectors = self.table[self.places[role][rows]]
        return found if self.projection is None else found @ self.projection

    def texts(self, role: str, rows: NDArray[np.int64]) -> PooledTexts:
        """The texts of n rows."""
        return PooledTexts(self.keys[role][rows], self.vectors(role, rows))

    def with_keys(self, keys: Mapping[str, NDArray[np.int64]]) -> "RowVectors":
        """The same with keys."""
        return replace(self, keys=keys)

    def projected(self, projection: Vectors) -> "RowVectors":
        """The same with a (D, E) projection."""
        return replace(self, projection=projection)


def row_vectors(rows: datasets.Dataset, kinds: Mapping[str, str], vectors_of: VectorsOf) -> RowVectors:
    """The vectors of the texts of some rows, each distinct text once.

    Args:
        rows: columns as in `LoadedSet.rows`.
        kinds: text role -> what sets it apart, such as its prompt; a text in two roles of a kind has one vector.
        vectors_of: called once for each kind.
    """
    tables: list[Vectors] = []
    places: dict[str, NDArray[np.int64]] = {}
    for kind in dict.fromkeys(kinds.values()):
        roles = [role for role in TEXT_ROLES if kinds.get(role) == kind]
        columns = {role: rows[role][:] for role in roles}
        number: dict[str, int] = {}
        start = sum(map(len, tables))
        for role, texts in columns.items():
            lists = [[text] if isinstance(text, str) else text for text in texts]
            found = [[start + number.setdefault(text, len(number)) for text in one] for one in lists]
            places[role] = np.array(found, dtype=np.int64)
            if isinstance(texts[0], str):
                places[role] = places[role][:, 0]
        tables.append(vectors_of(list(number), roles[0]))
    table = tables[0] if len(tables) == 1 else np.concatenate(tables)
    return RowVectors(table, places)


def cached_vectors(made_from: Any, compute: Callable[[], Vectors], cache_dir: Path | None = None) -> Vectors:
    """The (V, D) vectors that `compute` gives, or gave before from the same; memory-mapped.

    Args:
        made_from: everything that they depend on, as JSON can hold it.
        cache_dir: the folder to cache in; None for that of `datasets`.

    Raises:
        DataError: the cache cannot be written; and whatever `compute` raises.
    """
    entry = cache_folder(cache_dir) / fingerprint("vectors", made_from)

    def build(folder: Path) -> None:
        np.save(folder / FILE, compute())

    if not entry.is_dir():
        complete_or_absent(entry, build)
    try:
        return _open(entry)
    except (OSError, ValueError):  # cut short by a crash of the machine, or touched by somebody
        shutil.rmtree(entry)
        complete_or_absent(entry, build)
        return _open(entry)


def _open(entry: Path) -> Vectors:
    vectors: Vectors = np.load(entry / FILE, mmap_mode="r")
    return vectors
