"""Arithmetic of the page: ratios of pairs, rates, shares of the peak."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.speed.budget import ENCODING, TRAINING
from benchmarks.speed.record import Record

Pairs = Mapping[int, Record]
"""Number of a pair -> the record of one side."""

Figure = Callable[[Record], float]


@dataclass(frozen=True)
class Spread:
    """Some numbers by their median and range.

    >>> str(Spread.of([2.0, 4.0, 2.5]))
    '2.50 (2.00 to 4.00)'
    """

    median: float
    lowest: float
    highest: float
    count: int

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        """Of at least one number."""
        return cls(median(numbers), min(numbers), max(numbers), len(numbers))

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.median:.2f} (one)"
        return f"{self.median:.2f} ({self.lowest:.2f} to {self.highest:.2f})"


def rate(one: Record) -> float:
    """Rows, or texts, a second of the reported time."""
    return one.measured.rows_seen / one.measured.seconds


def token_rate(one: Record) -> float:
    """Real tokens a second of the reported time."""
    return one.measured.tokens / one.measured.seconds


def padding_and_repeats(one: Record) -> float:
    """Tokens with padding over those of distinct texts: what the peer's products take over what ours take."""
    return one.measured.padded_tokens / one.measured.distinct_tokens


def step_rate(one: Record) -> float:
    """Rows a second in the median step, the first left out where there are others: it sets things up."""
    steps = one.measured.step_seconds[1:] or one.measured.step_seconds
    return one.run.cell.batch / median(steps)


def seconds_of_step(one: Record) -> float:
    """Of the reported time, as a mean."""
    return one.measured.seconds / one.run.steps


def tokens_of_step(one: Record) -> float:
    """Real tokens of a step, as a mean."""
    return one.measured.tokens / one.run.steps


def total_seconds(one: Record) -> float:
    """From the start of the process to the end of training."""
    return one.measured.setup_seconds + one.measured.seconds


def share_of_peak(one: Record, parameters: int, peak: float) -> float:
    """Operations of the weights' products for real tokens, over what the machine could have done in that time.

    Training takes 6 for each token and weight, encoding 2; attention's own products are not counted, nor is the second
    forward of a gradient cache: it is the share that serves the result.
    """
    work = ENCODING if one.run.cell.table == "encode" else TRAINING
    return work * parameters * token_rate(one) / peak


def peak_bytes(one: Record) -> float:
    """Most memory from the first step on."""
    return one.measured.peak_bytes


def growth_bytes(one: Record) -> float:
    """The same beyond what model and data held before the first step."""
    return one.measured.peak_bytes - one.measured.base_bytes


def ratios(ours: Pairs, theirs: Pairs, figure: Figure = rate) -> list[float]:
    """Ours over theirs in each pair of which both sides have run."""
    both = sorted(ours.keys() & theirs.keys())
    return [figure(ours[pair]) / figure(theirs[pair]) for pair in both]


def middle(pairs: Pairs, figure: Figure) -> float:
    """The median of a figure over the runs of one side, at least one."""
    return median(figure(one) for one in pairs.values())


def megabytes(count: float) -> str:
    """Bytes as 1,234 MB.

    >>> megabytes(1_234_000_000)
    '1,234 MB'
    """
    return f"{count / 1e6:,.0f} MB"


def short(number: float) -> str:
    """Three digits: 0.123, 4.56, 78.9, 1,234.

    >>> [short(number) for number in (0.1234, 4.5678, 78.91, 1234.4)]
    ['0.123', '4.57', '78.9', '1,234']
    """
    digits = 3 if number < 1 else 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:,.{digits}f}"
