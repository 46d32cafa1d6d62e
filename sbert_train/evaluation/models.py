"""Models by name -> their comparison on some tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.classifier import classifier_of
from sbert_train.evaluation.compare import Comparison, compare
from sbert_train.evaluation.dimensions import check_dims, evaluate_tasks, name_at
from sbert_train.evaluation.prompts import settle_prompts
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.tasks import Task
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.resolve import resolve_model


def evaluate_models(
    models: Sequence[str],
    tasks: Sequence[Task],
    *,
    prompts: Mapping[str, str] | None = None,
    dims: Sequence[int] = (),
) -> Comparison:
    """Load each model in turn, run all tasks, and compare; the first model is the baseline.

    Args:
        models: Hub ids, folders or package://module/folder.
        prompts: role -> text for models that carry no prompts; one that does must carry the same, see
            `settle_prompts`. None or empty: every model takes its own.
        dims: evaluate on the first entries of the embeddings, too; see `evaluate_at`.

    Raises:
        SbertTrainError: a model cannot be loaded, is named twice, carries other prompts, has fewer dimensions, or a
            figure is undefined.
    """
    for i, model in enumerate(models):
        if model in models[:i]:
            raise EvaluationError(f"the model {model} is named twice; name each model once")
    results, widths = {}, {}
    for model in models:
        encoder = SentenceEncoder.load(model)
        settle_prompts(model, encoder, prompts)
        widths[model] = encoder.dimension
        try:
            results[model] = _results(model, encoder, tasks, dims)
        except EvaluationError as error:
            raise EvaluationError(f"{model}: {error}") from error
    return compare(_at_the_same_dims(results, widths))


def _results(
    model: str, encoder: SentenceEncoder, tasks: Sequence[Task], dims: Sequence[int]
) -> dict[str, TaskResult]:
    def encode(texts: Sequence[str], role: str) -> NDArray[np.float32]:
        return encoder.encode(texts, role=role)

    check_dims(dims, encoder.dimension)
    needed = any(task.uses_classifier for task in tasks)
    classify = classifier_of(resolve_model(model)) if needed else None
    return evaluate_tasks(tasks, encode, dims=dims, classify=classify)


def _at_the_same_dims(
    results: Mapping[str, Mapping[str, TaskResult]], widths: Mapping[str, int]
) -> dict[str, dict[str, TaskResult]]:
    """All results by the names of the widest model's: to what that one was cut, another may have as its own width."""
    widest = max(widths, key=lambda model: widths[model])
    same = {}
    for model, found in results.items():
        in_full = {name_at(name, widths[model]): result for name, result in found.items()}
        same[model] = {
            name: found[name] if name in found else replace(in_full[name], task=name)
            for name in results[widest]
        }
    return same
