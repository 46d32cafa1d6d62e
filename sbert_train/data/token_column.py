"""A column of token ids in Arrow, read text by text as numpy views of the memory-mapped file.

R rows, K negatives of a row, N texts of a column: R, or R * K; B rows of a batch.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sbert_train.data.batch import TokenIds
from sbert_train.data.keys import hash_texts

ROWS_AT_A_TIME = 10_000  # whose keys are worked out together


@dataclass(frozen=True, eq=False)
class TokenColumn:
    """The texts of a role of a data set.

    Attributes:
        pieces: the token ids of all texts, end to end, in as many arrays as Arrow has of them; none is copied.
        ends: (pieces,) int64, the tokens up to the end of each piece.
        starts: (N,) int64, the tokens before each text.
        lengths: (N,) int32.
        per_row: texts of a row: 1, or K.
    """

    pieces: tuple[TokenIds, ...]
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    per_row: int

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "TokenColumn":
        """The texts of a column of lists of int32; of `negative`, of lists of K such lists."""
        pieces, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for chunk in column.chunks:
            values, bounds = chunk.values, chunk.offsets.to_numpy()
            if not pa.types.is_integer(values.type):
                values, bounds = values.values, values.offsets.to_numpy()[bounds[0] : bounds[-1] + 1]
            pieces.append(values.to_numpy()[bounds[0] : bounds[-1]])
            lengths.append(np.diff(bounds).astype(np.int32))
        every = np.concatenate(lengths)
        return cls(
            pieces=tuple(pieces),
            ends=np.cumsum([len(piece) for piece in pieces]),
            starts=np.cumsum(every, dtype=np.int64) - every,
            lengths=every,
            per_row=max(1, len(every) // max(1, len(column))),
        )

    def texts(self, rows: NDArray[np.int64]) -> list[TokenIds]:
        """The token ids of the texts of B rows, row by row: B views, or B * K."""
        numbers = (rows[:, None] * self.per_row + np.arange(self.per_row)).ravel()
        starts = self.starts[numbers]
        # An empty text behind the last token is none of a piece's own, so that any piece will do.
        pieces = np.minimum(np.searchsorted(self.ends, starts, side="right"), len(self.pieces) - 1)
        within = starts - np.concatenate([[0], self.ends])[pieces]
        stops = within + self.lengths[numbers]
        bounds = zip(pieces.tolist(), within.tolist(), stops.tolist(), strict=True)
        return [self.pieces[piece][start:stop] for piece, start, stop in bounds]

    def keys(self) -> NDArray[np.int64]:
        """(R, 1), or (R, K) for `negative`: the key of each text."""
        rows = len(self.lengths) // self.per_row
        found = np.empty((rows, self.per_row), dtype=np.int64)
        for start in range(0, rows, ROWS_AT_A_TIME):
            block = np.arange(start, min(start + ROWS_AT_A_TIME, rows))
            lengths = self.lengths.reshape(rows, -1)[block].ravel()
            found[block] = hash_texts(np.concatenate(self.texts(block)), lengths).reshape(len(block), -1)
        return found
