"""What stands for a text: 64 bits, worked out for all texts of a batch at once.

N texts, T tokens (of all texts).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The constants of SplitMix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", figure 16).
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST = np.uint64(31)
_HALF = np.uint64(32)


def hash_texts(ids: NDArray[np.int32], lengths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """A key of each text: the sum, modulo 2^64, of its tokens with their places, each mixed to 64 bits.

    Equal texts have equal keys in every process; that some two of a million different ones share a key has a chance of
    3 in 10^8.

    Args:
        ids: (T,) the token ids of all texts, end to end.
        lengths: (N,) tokens of each text; their sum is T.

    Returns:
        (N,) int64.
    """
    ends = np.cumsum(lengths)
    places = (np.arange(len(ids)) - np.repeat(ends - lengths, lengths)).astype(np.uint64)
    mixed = _mix((places << _HALF) | ids.astype(np.uint32))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    found: NDArray[np.uint64] = sums[ends] - sums[ends - lengths]
    return found.view(np.int64)


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of SplitMix64: one to one, and half of its bits change with any bit that goes in."""
    numbers = numbers + _GAMMA
    for shift, factor in _STEPS:
        numbers ^= numbers >> shift
        numbers *= factor
    numbers ^= numbers >> _LAST
    return numbers
