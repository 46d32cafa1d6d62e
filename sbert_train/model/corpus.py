"""In which order and portions the texts of a corpus are read: longest first, equal ones together, a chunk at a time.

N texts of a corpus, R rows of a chunk, n distinct texts of a chunk.

Texts of one length fill a forward without waste, so the order is that of the whole corpus. What a text costs is known
only when it is tokenised, and the tokens of millions of texts are too many to hold: so the whole is sorted by
characters, and the texts of a chunk, which are nearly of one length then, by tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a corpus.

    Attributes:
        rows: (R,) where they stand in the corpus.
        texts: the n distinct texts among them.
        number: (R,) which of `texts` each row is.
    """

    rows: Places
    texts: list[str]
    number: Places


def longest_first(texts: Sequence[str]) -> Places:
    """(N,) where the texts stand, by falling number of characters, so that a memory that is too small shows at once;
    equal texts are neighbours. The order and what sorting it takes are 20 bytes a text.

    >>> longest_first(["a cat", "a", "two cats", "a"]).tolist()
    [2, 0, 1, 3]
    """
    # Among texts of one length a checksum decides: in 8 bytes, and unlike hash() the same in every process.
    keys = np.fromiter(
        (-(len(text) << 32) + crc32(text.encode("utf-8", "surrogatepass")) for text in texts),
        dtype=np.int64,
        count=len(texts),
    )
    return np.argsort(keys, kind="stable")


def chunks(texts: Sequence[str], characters: int, *, overhead: int = 0) -> Iterator[Chunk]:
    """The corpus, longest texts first.

    Args:
        characters: of all rows of a chunk at most, unless it is a single row.
        overhead: what a row counts besides the characters of its text, such as those of its prompt.
    """
    rows: list[int] = []
    size = 0
    for row in map(int, longest_first(texts)):  # not tolist(), which would hold N integers of 32 bytes
        cost = len(texts[row]) + overhead
        if rows and size + cost > characters:
            yield _chunk(texts, rows)
            rows, size = [], 0
        rows.append(row)
        size += cost
    if rows:
        yield _chunk(texts, rows)


def _chunk(texts: Sequence[str], rows: Sequence[int]) -> Chunk:
    numbers: dict[str, int] = {}
    number = [numbers.setdefault(texts[row], len(numbers)) for row in rows]
    # Copies, for tokenizers and pickle leave the UTF-8 form of a text that is not ASCII in it for good.
    own = ["".join((text[:1], text[1:])) for text in numbers]
    return Chunk(np.array(rows, np.int64), own, np.array(number, np.int64))


def forwards(lengths: NDArray[np.int64], tokens: int, texts: int | None = None) -> Iterator[Places]:
    """Which texts go through the encoder together: many short ones or few long ones, longest first.

    Args:
        lengths: (n,) token counts.
        tokens: of a forward at most, unless it is a single text.
        texts: of a forward at most; None for no such limit.

    >>> [places.tolist() for places in forwards(np.array([2, 5, 2, 9, 3]), tokens=8)]
    [[3], [1, 4], [0, 2]]
    """
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + tokens, side="right")))
        if texts is not None:
            stop = min(stop, start + texts)
        yield order[start:stop]
        start = stop
