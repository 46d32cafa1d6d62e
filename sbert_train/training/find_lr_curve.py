"""Where the losses of a range test fall, and whether they do so by more than their noise.

S steps.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SPREAD = 3.0
"""Steps: the standard deviation of the kernel that smooths losses."""
PER_FALL = 4.0
"""Kernels to a fall: one of many steps is smoothed more widely, lest its steepest place is that of its noise."""
SHORTEST = 6
"""Steps: the shortest fall that is looked for. In fewer the smoothed loss, with its kernel, cannot fall."""
CLEAR = 3.5
"""Times its own standard error a fall has to be deep. It is the best of thousands of places, and of losses that are
noise alone that of one sweep in 60 is deeper (one in 14 is beyond 3)."""
HIDDEN = 0.1
"""Share of the loss. Where so deep a fall would have gone unseen, it cannot be said that there was none."""


def smooth(losses: Sequence[float] | NDArray[np.float64], spread: float = SPREAD) -> NDArray[np.float64]:
    """(S,) -> (S,): the mean of the steps around each, weighed by a Gaussian of some steps. It looks ahead as far as
    back, so that what it shows is not shifted to higher rates, as a running mean would."""
    values, steps = np.asarray(losses, dtype=np.float64), np.arange(len(losses))
    weights = np.exp(-0.5 * ((steps[:, None] - steps) / spread) ** 2)
    means: NDArray[np.float64] = (weights @ values) / weights.sum(axis=1)
    return means


def noise(losses: Sequence[float] | NDArray[np.float64]) -> float:
    """(S,) -> the standard deviation of single losses, from those of neighbours (Rice 1984): a fall over many steps
    hardly adds to it, and unlike residuals it needs no curve to be measured against."""
    return float(np.sqrt((np.diff(losses) ** 2).mean() / 2)) if len(losses) > 1 else 0.0


def fall(losses: NDArray[np.float64]) -> tuple[int, int, float]:
    """(S,) -> (the step where the fall begins, where it ends, how far it stands out).

    The straight fall from one level to another that fits best in squares, over all beginnings and ends. As it weighs
    all steps before and after the fall, bumps of the noise do not count as a fall, though they be steeper. How far it
    stands out is its depth over its standard error, if noise had a standard deviation of 1.
    """
    steps = np.arange(len(losses))
    best = (0, len(losses) - 1, 0.0)
    for begin in range(len(losses) - SHORTEST):
        ends = np.arange(begin + SHORTEST, len(losses))
        shapes = np.clip((steps - begin) / (ends - begin)[:, None], 0, 1)
        shapes -= shapes.mean(axis=1, keepdims=True)
        out = -(shapes @ losses) / np.sqrt((shapes**2).sum(axis=1))
        if out.max() > best[2]:
            best = begin, int(ends[out.argmax()]), float(out.max())
    return best


def suggest(rates: Sequence[float], losses: Sequence[float]) -> float | None:
    """The rate at which the smoothed loss falls fastest, by the logarithm of the rate, within the fall that leads to
    where it is lowest; None where that fall is no clearer than noise alone may show, nor a thousandth deep."""
    smoothed = smooth(losses)
    lowest = int(smoothed.argmin())
    if smoothed[: lowest + 1].max() - smoothed[lowest] <= 1e-3 * abs(smoothed[0]):
        return None
    down = np.asarray(losses[: lowest + 1], dtype=np.float64)
    begin, end, out = fall(down)
    if out <= CLEAR * noise(down):
        return None
    wide = smooth(down, max(SPREAD, (end - begin) / PER_FALL))
    slopes = np.gradient(wide, np.log(rates[: lowest + 1]))
    return float(rates[begin + int(slopes[begin : end + 1].argmin())])


def too_noisy(losses: Sequence[float]) -> bool:
    """Whether a fall by a tenth, half-way through the steps, would not have been clear.

    The noise is that of the first half: what comes behind may be far apart for it diverges.
    """
    smallest = CLEAR * noise(losses[: (len(losses) + 1) // 2]) * 2 / np.sqrt(len(losses))
    return bool(smallest > HIDDEN * abs(smooth(losses)[0]))
