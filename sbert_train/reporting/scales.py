"""Where values stand on an axis, and which round numbers are written beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from sbert_train.reporting.verdict import MINUS

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LABEL_SIZE = 12.5
"""The font size of labels, which style.css has too."""
DIGIT_WIDTH, OTHER_WIDTHS = 0.64, {MINUS: 0.84, "%": 0.96, ".": 0.32, ",": 0.32}
"""In font sizes, as DejaVu Sans has them, one of the widest fonts that a page may be shown in."""
SAME = 1e-4
"""Values that differ by less than this share of the largest are drawn as what they nearly are: a flat line."""


@dataclass(frozen=True)
class Axis:
    """Values from low to high on places from start to end."""

    low: float
    high: float
    start: float
    end: float
    whole: bool = False
    """Whether there is nothing between whole numbers."""

    def place(self, value: float) -> float:
        """Where a value stands; the nearer end for one outside."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers within the axis, at most so many."""
        step = round_step((self.high - self.low) / most)
        while True:
            first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
            if last - first < most and not (self.whole and step % 1):
                return [number * step for number in range(first, last + 1)]
            step = round_step(step * 1.01)


def axis_around(
    values: Sequence[float], start: float, end: float, *, most: int = 5, zero: bool = False
) -> Axis:
    """An axis that holds all values and ends at round numbers.

    Args:
        zero: whether it begins at zero.
    """
    finite = [value for value in values if isfinite(value)] or [0.0, 1.0]
    low, high = (0.0 if zero else min(finite)), max(finite)
    if high - low <= SAME * max(abs(low), abs(high)):
        margin = max(abs(low), abs(high)) * 0.1 or 1.0
        low, high = (low, low + margin) if zero else (low - margin, high + margin)
    step = round_step((high - low) / most)
    return Axis(floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, start, end)


def round_step(wanted: float) -> float:
    """The next round number, of 1, 2, 2.5 and 5 and their tenfolds.

    >>> round_step(0.13), round_step(21.0)
    (0.2, 25.0)
    """
    power = 10.0 ** floor(log10(wanted))
    return next(step for step in (one * power for one in STEPS) if step >= wanted * (1 - 1e-9))


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, all with as many digits as the finest needs.

    >>> tick_labels([0.0, 0.25, 0.5]), tick_labels([0.0, 2e-05]), tick_labels([0.0, 5000.0])
    (['0.00', '0.25', '0.50'], ['0', '2e-5'], ['0', '5,000'])
    """
    largest = max(map(abs, ticks), default=0.0)
    if 0 < largest < 1e-3 or largest >= 1e6:
        written = ([scientific(tick, digits) for tick in ticks] for digits in range(7))
        return next(labels for labels in written if len(set(labels)) == len(labels))
    digits = next((d for d in range(7) if all(abs(round(t, d) - t) < 1e-9 for t in ticks)), 6)
    return [f"{0.0 if tick == 0 else tick:,.{digits}f}".replace("-", MINUS) for tick in ticks]


def label_width(label: str) -> float:
    """How much room a figure takes at most.

    >>> label_width("0.5"), label_width("100%")
    (20.0, 36.0)
    """
    return LABEL_SIZE * sum(OTHER_WIDTHS.get(character, DIGIT_WIDTH) for character in label)


def scientific(value: float, digits: int) -> str:
    """Such as 2e-5."""
    if value == 0:
        return "0"
    figure, _, power = f"{value:.{digits}e}".partition("e")
    return f"{figure}e{int(power)}".replace("-", MINUS, 1 if value < 0 else 0)
