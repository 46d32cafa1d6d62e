"""Several models on the same eval sets: their figures with intervals, and differences from the first.

Training's before -> after is the comparison of two.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.bootstrap import (
    LEVEL,
    RESAMPLES,
    Estimate,
    check_paired,
    estimate,
    resampled_metrics,
)
from sbert_train.evaluation.results import TaskResult


@dataclass(frozen=True)
class TaskComparison:
    """All models on one eval set."""

    task: str
    kind: str
    primary_metric: str
    n: int
    unit: str
    details: Mapping[str, int]
    fingerprint: str
    scores: Mapping[str, Mapping[str, Estimate]]
    """model -> metric -> figure."""
    differences: Mapping[str, Mapping[str, Estimate]]
    """model -> metric -> figure minus that of the first model, on the same resamples; not for the first."""
    decisions: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """model -> metric -> what the model's figure rests on, such as a threshold, for the metrics that have such."""


@dataclass(frozen=True)
class Comparison:
    """All models on all eval sets."""

    models: tuple[str, ...]
    """In the order given; the first is the baseline of the differences."""
    tasks: tuple[TaskComparison, ...]
    resamples: int
    seed: int

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps, with these keys:

            models: [name, ...]     baseline: name of the first
            interval: {method: "percentile bootstrap", level: 0.95, resamples, seed}
            tasks: [{task, kind, primary_metric, n, unit, details: {...}, fingerprint,
                     scores:      {model: {metric: {value, low, high, resamples}}},
                     differences: {model: {metric: {value, low, high, resamples}}},
                     decisions:   {model: {metric: {name: value}}}}, ...]

        differences are from the baseline, which has no entry there; the resamples of a figure are those
        on which it is defined. decisions are such as {threshold, precision, recall} of a best F1; most tasks
        have none.
        """
        return {
            "models": list(self.models),
            "baseline": self.models[0],
            "interval": {
                "method": "percentile bootstrap",
                "level": LEVEL,
                "resamples": self.resamples,
                "seed": self.seed,
            },
            "tasks": [asdict(task) for task in self.tasks],
        }


def compare(
    results: Mapping[str, Mapping[str, TaskResult]], *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Compare results by model, then eval set; the first model is the baseline.

    Raises EvaluationError if there is nothing to compare, the models were not evaluated on the same eval
    sets and examples, or a figure has no interval.
    """
    models = tuple(results)
    if not models or not results[models[0]]:
        raise EvaluationError("expected the results of a model on an eval set, found none; add an eval set")
    tasks = tuple(results[models[0]])
    for model in models:
        if set(results[model]) != set(tasks):
            raise EvaluationError(
                f"expected {model!r} on the eval sets {', '.join(tasks)} like {models[0]!r}, "
                f"found {', '.join(results[model]) or 'none'}; evaluate all models on the same sets"
            )
    return Comparison(
        models=models,
        tasks=tuple(
            _compare_task({model: results[model][task] for model in models}, resamples, seed)
            for task in tasks
        ),
        resamples=resamples,
        seed=seed,
    )


def before_after(
    before: Mapping[str, TaskResult],
    after: Mapping[str, TaskResult],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare one model's results by eval set with those after training, as models "before" and "after"."""
    return compare({"before": before, "after": after}, resamples=resamples, seed=seed)


def _compare_task(results: Mapping[str, TaskResult], resamples: int, seed: int) -> TaskComparison:
    baseline = next(iter(results.values()))
    for result in results.values():
        check_paired(result, baseline)
    metrics = list(baseline.metrics)
    samples = [result.sample for result in results.values()]
    resampled = dict(
        zip(results, resampled_metrics(samples, metrics, resamples=resamples, seed=seed), strict=True)
    )
    reference = resampled[next(iter(results))]
    what = {metric: f"{metric} of eval set {baseline.task!r}" for metric in metrics}
    scores = {
        model: {
            metric: estimate(result.metrics[metric], resampled[model][row], what[metric])
            for row, metric in enumerate(metrics)
        }
        for model, result in results.items()
    }
    differences = {
        model: {
            metric: estimate(
                result.metrics[metric] - baseline.metrics[metric],
                resampled[model][row] - reference[row],
                what[metric],
            )
            for row, metric in enumerate(metrics)
        }
        for model, result in list(results.items())[1:]
    }
    return TaskComparison(
        task=baseline.task,
        kind=baseline.kind,
        primary_metric=baseline.primary_metric,
        n=baseline.n,
        unit=baseline.unit,
        details=baseline.details,
        fingerprint=baseline.fingerprint,
        scores=scores,
        differences=differences,
        decisions={model: result.decisions for model, result in results.items() if result.decisions},
    )
