"""Models by name -> their comparison on some tasks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.compare import Comparison, compare
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.tasks import Task
from sbert_train.model.encoder import SentenceEncoder


def evaluate_models(models: Sequence[str], tasks: Sequence[Task]) -> Comparison:
    """Load each model in turn, run all tasks, and compare; the first model is the baseline.

    Args:
        models: Hub ids, folders or package://module/folder.

    Raises:
        SbertTrainError: a model cannot be loaded, is named twice, or a figure is undefined.
    """
    for i, model in enumerate(models):
        if model in models[:i]:
            raise EvaluationError(f"the model {model} is named twice; name each model once")
    results: dict[str, dict[str, TaskResult]] = {}
    for model in models:
        encoder = SentenceEncoder.load(model)

        def encode(
            texts: Sequence[str], role: str, encoder: SentenceEncoder = encoder
        ) -> NDArray[np.float32]:
            return encoder.encode(texts, role=role)

        results[model] = {task.name: task.evaluate(encode) for task in tasks}
    return compare(results)
