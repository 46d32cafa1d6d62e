"""What a training came to, in words: better, worse, or no change beyond the chance of these examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.compare import Comparison, TaskComparison

Direction = Literal["better", "worse", "no change"]

UNMEASURED = "There are no eval sets, so whether the model is better than its base was not measured."
DIGITS, MOST_DIGITS = 3, 6
MINUS = "\N{MINUS SIGN}"
BEGINNINGS: Mapping[Direction, str] = {
    "better": "better on",
    "worse": "worse on",
    "no change": "no change beyond chance on",
}


@dataclass(frozen=True)
class Finding:
    """What became of one metric of an eval set."""

    set: str
    metric: str
    change: Estimate
    """The tuned model's figure minus that of the base, with its paired interval."""
    selects: bool
    """Whether this metric selected the model that was kept."""
    is_primary: bool
    """Whether it is the metric that stands for the eval set."""

    @property
    def direction(self) -> Direction:
        if not self.change.excludes_zero:
            return "no change"
        return "better" if self.change.value > 0 else "worse"

    @property
    def words(self) -> str:
        """What stands behind `better on`, such as `stsb by 0.044 [0.036, 0.052]`; of what was lost the sizes, too."""
        metric = "" if self.is_primary else f" ({self.metric})"
        if self.direction == "no change":
            value, low, high = (signed(one) for one in _of(self.change))
            return f"{self.set}{metric} ({value} [{low}, {high}])"
        sizes = sorted(abs(one) for one in (self.change.low, self.change.high))
        digits = _digits(sizes[0])
        value, low, high = (f"{one:.{digits}f}" for one in (abs(self.change.value), *sizes))
        return f"{self.set}{metric} by {value} [{low}, {high}]"


def findings(comparison: Comparison | None, selected_by: str | None) -> list[Finding]:
    """The primary metric of each eval set, and that which selected the model, if it is another.

    Args:
        comparison: of the models `before` and `after`; None without eval sets.
        selected_by: EVALSET_METRIC; None where the last model was kept.
    """
    return [
        Finding(
            set=task.task,
            metric=metric,
            change=task.differences["after"][metric],
            selects=f"{task.task}_{metric}" == selected_by,
            is_primary=metric == task.primary_metric,
        )
        for task in (comparison.tasks if comparison else ())
        for metric in _metrics(task, selected_by)
    ]


def verdict(found: Sequence[Finding]) -> str:
    """One sentence: what got better first, then what got worse, then the rest."""
    if not found:
        return UNMEASURED
    words = {
        direction: [one.words for one in found if one.direction == direction] for direction in BEGINNINGS
    }
    said = "; ".join(f"{BEGINNINGS[one]} {', '.join(sets)}" for one, sets in words.items() if sets)
    return f"{said[0].upper()}{said[1:]}."


def signed(value: float, digits: int = DIGITS) -> str:
    """A difference as text, with a true minus; zero has no sign.

    >>> signed(0.0444), signed(-0.0001)
    ('+0.044', '0.000')
    """
    text = f"{value:+.{digits}f}".replace("-", MINUS)
    return text[1:] if float(f"{value:.{digits}f}") == 0 else text


def _metrics(task: TaskComparison, selected_by: str | None) -> list[str]:
    others = [metric for metric in task.differences["after"] if f"{task.task}_{metric}" == selected_by]
    return list(dict.fromkeys([task.primary_metric, *others]))


def _of(change: Estimate) -> tuple[float, float, float]:
    return change.value, change.low, change.high


def _digits(smallest: float) -> int:
    """So many that a bound that is not zero does not look like it."""
    wanted = (digits for digits in range(DIGITS, MOST_DIGITS) if float(f"{smallest:.{digits}f}"))
    return next(wanted, MOST_DIGITS)
