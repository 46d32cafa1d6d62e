"""How far a figure would move with other examples: bootstrap intervals, and paired differences.

Shapes: N examples, R resamples, S samples (one per model), M metrics.

A resample draws N of the N examples with replacement. The interval holds the middle 95 % of a metric's
values over the resamples: the percentile interval of Efron and Tibshirani 1993, "An Introduction to the
Bootstrap", section 13.3. Two models are compared on the same resamples, so that the hard examples are
hard for both: the paired bootstrap of Koehn 2004, "Statistical Significance Tests for Machine Translation
Evaluation". It tells how sure the figure is given the model, not how much another seed would change it.

A resample on which a metric is undefined (a correlation where a single distinct gold score or prediction
was drawn, which happens in tiny sets) is left out of that interval and its count, not replaced; with fewer
than half of the resamples left there is no interval but an EvaluationError.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.metrics import Floats
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.samples import Sample

LEVEL = 0.95
RESAMPLES = 1000
# Counts of one block of resamples, 8 bytes each: a few such arrays are held at a time.
COUNTS_PER_BLOCK = 1_000_000


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval."""

    value: float
    """On the examples themselves."""
    low: float
    high: float
    resamples: int
    """How many resamples the interval is drawn from: those on which the figure is defined."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero: for a difference, that it is beyond chance."""
        return self.low > 0 or self.high < 0


def resampled_metrics(
    samples: Sequence[Sample], metrics: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """The metrics of each sample on the same resamples, as (S, M, R); NaN where undefined.

    All samples must be of the same N examples in the same order. At most a block of resamples is held at
    a time, whatever N.
    """
    generator = np.random.default_rng(seed)
    size = samples[0].size
    per_block = max(1, COUNTS_PER_BLOCK // size)
    blocks = []
    for start in range(0, resamples, per_block):
        counts = _counts(generator, min(per_block, resamples - start), size)
        blocks.append(np.stack([sample.resampled(metrics, counts).T for sample in samples]))
    return np.concatenate(blocks, axis=2)


def estimate(value: float, resampled: Floats, what: str) -> Estimate:
    """The estimate of a figure whose values on resamples are (R,), NaN where undefined."""
    defined = resampled[~np.isnan(resampled)]
    if 2 * len(defined) < len(resampled):
        raise EvaluationError(
            f"{what} has no bootstrap interval: it is undefined on {len(resampled) - len(defined):,} of "
            f"{len(resampled):,} resamples; evaluate on more, or more varied, examples"
        )
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value=value, low=float(low), high=float(high), resamples=len(defined))


def check_paired(result: TaskResult, baseline: TaskResult) -> None:
    """Raise EvaluationError unless both results are of the same task on the same examples."""
    if (result.kind, result.fingerprint) != (baseline.kind, baseline.fingerprint):
        raise EvaluationError(
            f"eval set {result.task!r}: expected both models on the same examples, found {baseline.n:,} "
            f"{baseline.unit} and {result.n:,} {result.unit} that differ; evaluate both on one file"
        )


def _counts(generator: np.random.Generator, resamples: int, size: int) -> Floats:
    """How often each of size examples was drawn in each resample, (resamples, size)."""
    drawn = generator.integers(0, size, (resamples, size))
    drawn += np.arange(resamples)[:, None] * size
    counts = np.bincount(drawn.ravel(), minlength=resamples * size)
    return counts.reshape(resamples, size).astype(np.float64)
