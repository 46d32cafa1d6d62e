"""By which metric the best model is selected."""

from collections.abc import Mapping

from transformers import TrainingArguments

from sbert_train.errors import ConfigError
from sbert_train.evaluation.tasks import TaskResult


def selected_by(args: TrainingArguments) -> str | None:
    """EVALSET_METRIC of the metric that selects the best checkpoint; None where none does."""
    metric = args.metric_for_best_model if args.load_best_model_at_end else None
    return None if metric is None else metric.removeprefix("eval_")


def require_selectable(args: TrainingArguments, results: Mapping[str, TaskResult]) -> None:
    """The metric that selects the best checkpoint must be one that the eval sets give."""
    wanted = selected_by(args)
    if wanted is None:
        return
    known = [f"{name}_{metric}" for name, result in results.items() for metric in result.metrics]
    if wanted not in known:
        raise ConfigError(
            f"train.metric_for_best_model: no eval set gives {wanted}; there are: {', '.join(known)}"
        )
