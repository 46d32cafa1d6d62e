"""What a set asks a model to tell apart: its labels, and its scores with the scale that they seem to be on.

R rows, S scores of a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 5
SCALES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))
"""Those that people give scores on, the narrowest first."""
_SPANNED = 0.6  # of the scale that the configuration names; scores on a narrower scale span less


@dataclass(frozen=True)
class LabelCount:
    """How many rows have a label: a class number, and its name where the configuration gives one."""

    label: int
    name: str | None
    rows: int


@dataclass(frozen=True)
class Scores:
    """The scores of a set, as its source has them.

    Attributes:
        lowest, highest, mean: of all scores.
        histogram: how many scores lie in each of BINS equal parts of their scale.
        scale: [low, high] of the histogram: the configuration's score_range, else the guess, else lowest to highest.
        guess: the narrowest of SCALES that holds them; None where none does.
        score_range: that of the configuration; None where it has none.
    """

    lowest: float
    highest: float
    mean: float
    histogram: tuple[int, ...]
    scale: tuple[float, float]
    guess: tuple[float, float] | None
    score_range: tuple[float, float] | None

    @property
    def looks_misread(self) -> bool:
        """Whether the scores seem to be on another, narrower scale than the configuration says."""
        if self.score_range is None or self.guess is None or self.guess == self.score_range:
            return False
        low, high = self.score_range
        return (
            self.highest - self.lowest <= _SPANNED * (high - low)
            and self.guess[1] - self.guess[0] < high - low
        )


def count_labels(labels: NDArray[np.int64], names: Sequence[str] | None = None) -> tuple[LabelCount, ...]:
    """The labels (R,) that there are, lowest first."""
    found, counts = np.unique(labels, return_counts=True)
    return tuple(
        LabelCount(int(label), names[label] if names and 0 <= label < len(names) else None, int(count))
        for label, count in zip(found, counts, strict=True)
    )


def most_frequent(labels: Sequence[LabelCount], count: int) -> tuple[LabelCount, ...]:
    """At most so many labels, those of most rows, lowest first."""
    chosen = sorted(labels, key=lambda one: -one.rows)[:count]
    return tuple(sorted(chosen, key=lambda one: one.label))


def describe_scores(scores: NDArray[Any], score_range: tuple[float, float] | None) -> Scores:
    """The scores (R,) or (R, S) of a set, which lie in [0, 1] where there is a score_range."""
    raw = np.asarray(scores, dtype=np.float64).ravel()
    if score_range is not None:
        low, high = score_range
        raw = (low + raw * (high - low)).round(9)
    lowest, highest = float(raw.min()), float(raw.max())
    guess = next((one for one in SCALES if one[0] <= lowest and highest <= one[1]), None)
    scale = score_range or guess or (lowest, highest)
    histogram, _ = np.histogram(raw, bins=BINS, range=scale)
    return Scores(
        lowest=lowest,
        highest=highest,
        mean=float(raw.mean()),
        histogram=tuple(histogram.tolist()),
        scale=scale,
        guess=guess,
        score_range=score_range,
    )
