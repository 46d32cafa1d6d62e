"""One figure with its interval, where `compare` gives all of them at once: what the tests of both are written in."""

from sbert_train.evaluation.bootstrap import RESAMPLES, Estimate, check_paired, estimate, resampled_metrics
from sbert_train.evaluation.results import TaskResult


def interval(
    result: TaskResult, metric: str | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """A metric (the primary one unless named) with its interval."""
    metric = metric or result.primary_metric
    values = resampled_metrics([result.sample], [metric], resamples=resamples, seed=seed)
    return estimate(result.metrics[metric], values[0, 0], f"{metric} of eval set {result.task!r}")


def paired_difference(
    result: TaskResult,
    baseline: TaskResult,
    metric: str | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """result minus baseline in a metric (the primary one unless named), with its paired interval."""
    check_paired(result, baseline)
    metric = metric or result.primary_metric
    values = resampled_metrics([result.sample, baseline.sample], [metric], resamples=resamples, seed=seed)
    return estimate(
        result.metrics[metric] - baseline.metrics[metric],
        values[0, 0] - values[1, 0],
        f"{metric} of eval set {result.task!r}",
    )
