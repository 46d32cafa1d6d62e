"""One run with several seeds: how far its figures lie apart, and whether the gain stands out from that.

    value    of a metric, of the model that a seed ended with
    gain     the value less that of the base, as this seed's run measured it; the mean of it over seeds
    spread   the standard deviation (n - 1) of the seeds' gains
    noise    the gain, up or down, is smaller than the spread: one run more may as well show the opposite

Where the base has one value for all seeds, which is so but for a classifier that begins at random, the standard
deviation of the values is the spread. It tells what seeds change, the intervals of a run what the examples change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from sbert_train.errors import EvaluationError
from sbert_train.reporting.runs import Change, EvalSet, FinishedRun


@dataclass(frozen=True)
class OverSeeds:
    """A metric of two seeds or more."""

    changes: Mapping[int, Change]
    """seed -> its figures."""

    @cached_property
    def values(self) -> Mapping[int, float]:
        return {seed: change.after.value for seed, change in self.changes.items()}

    @cached_property
    def gains(self) -> Mapping[int, float]:
        return {seed: change.after.value - change.before.value for seed, change in self.changes.items()}

    @property
    def baseline(self) -> float:
        return fmean(change.before.value for change in self.changes.values())

    @property
    def mean(self) -> float:
        return fmean(self.values.values())

    @property
    def standard_deviation(self) -> float:
        return stdev(self.values.values())

    @property
    def gain(self) -> float:
        return fmean(self.gains.values())

    @property
    def spread(self) -> float:
        return stdev(self.gains.values())

    @property
    def noise(self) -> bool:
        return abs(self.gain) < self.spread

    @property
    def verdict(self) -> str:
        """What the gain is worth, in words."""
        what = "gain" if self.gain > 0 else "loss"
        if self.gain == self.spread == 0:
            said = "no change"
        elif self.noise:
            said = f"noise: the {what} is smaller than the spread over seeds"
        else:
            said = f"the {what} is not smaller than the spread over seeds"
        gained = sum(gain > 0 for gain in self.gains.values())
        lost = sum(gain < 0 for gain in self.gains.values())
        mixed = f"; {gained} of {len(self.gains)} seeds gained, {lost} lost" if gained and lost else ""
        return f"{said} ({self.gain:+.4f}, spread {self.spread:.4f}){mixed}"

    def to_json(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "values": {str(seed): value for seed, value in self.values.items()},
            "mean": self.mean,
            "standard_deviation": self.standard_deviation,
            "gain": self.gain,
            "gains": {str(seed): gain for seed, gain in self.gains.items()},
            "spread": self.spread,
            "noise": self.noise,
        }


@dataclass(frozen=True)
class SetOverSeeds:
    """An eval set of a series."""

    about: EvalSet
    """As the run of the first seed has it."""
    metrics: Mapping[str, OverSeeds]


@dataclass(frozen=True)
class Series:
    """The runs of several seeds, finished."""

    runs: Mapping[int, FinishedRun]
    sets: tuple[SetOverSeeds, ...]
    greater_is_better: bool = True
    """Of the metric that selects a model."""

    @property
    def selected_by(self) -> str | None:
        """EVALSET_METRIC by which each seed's model was selected; None where it is the last."""
        return next(iter(self.runs.values())).selected_by

    @property
    def best_seed(self) -> int | None:
        """The seed whose model is the best by the metric that selects, the first of those that share its value; None
        where no metric does, and where all seeds have one value."""
        for one in self.sets:
            for metric, over in one.metrics.items():
                if f"{one.about.name}_{metric}" == self.selected_by and len(set(over.values.values())) > 1:
                    pick = max if self.greater_is_better else min
                    return pick(over.values, key=lambda seed: over.values[seed])
        return None

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps, with these keys:

            seeds: [seed, ...]     runs: {seed: the run's folder, beside this file}
            selected_by: EVALSET_METRIC, or null     best_seed: the best by it; null where none is
            evaluation: [{task, kind, primary_metric, n, unit, fingerprint,
                          metrics: {metric: {baseline, values: {seed: value}, mean, standard_deviation,
                                             gain, gains: {seed: gain}, spread, noise}}}, ...]

        baseline, mean and gain are means over seeds; standard_deviation (of the values) and spread (of the gains) are
        those of a sample, n - 1; noise is true where the gain, up or down, is smaller than the spread.
        """
        return {
            "seeds": list(self.runs),
            "runs": {str(seed): run.name for seed, run in self.runs.items()},
            "selected_by": self.selected_by,
            "best_seed": self.best_seed,
            "evaluation": [
                {
                    "task": one.about.name,
                    "kind": one.about.kind,
                    "primary_metric": one.about.primary_metric,
                    "n": one.about.n,
                    "unit": one.about.unit,
                    "fingerprint": one.about.fingerprint,
                    "metrics": {metric: over.to_json() for metric, over in one.metrics.items()},
                }
                for one in self.sets
            ],
        }


def series_of(runs: Mapping[int, FinishedRun], *, greater_is_better: bool = True) -> Series:
    """The figures of runs by seed.

    Raises:
        EvaluationError: they were not evaluated on the same examples.
    """
    first = next(iter(runs.values()))
    for run in runs.values():
        if _examples(run.sets) != _examples(first.sets):
            raise EvaluationError(
                f"{first.folder} and {run.folder} were not evaluated on the same examples, as the eval sets have "
                "changed between them; train all seeds anew with --overwrite"
            )
    sets = tuple(
        SetOverSeeds(
            about,
            {
                metric: OverSeeds({seed: run.sets[number].metrics[metric] for seed, run in runs.items()})
                for metric in about.metrics
            },
        )
        for number, about in enumerate(first.sets)
    )
    return Series(dict(runs), sets, greater_is_better)


def _examples(sets: Sequence[EvalSet]) -> list[tuple[str, str, str, list[str]]]:
    return [(one.name, one.kind, one.fingerprint, list(one.metrics)) for one in sets]
