"""Pearson and Spearman as an `evaluate.Metric`, and a `compute_metrics` over it, as transformers.Trainer takes it.

Shapes: N pairs, D dimensions.
"""

from collections.abc import Mapping

import datasets
import evaluate
import numpy as np
from transformers import EvalPrediction

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.metrics import (
    CORRELATION_METRICS,
    CORRELATIONS,
    Array,
    Floats,
    pair_similarities,
)


class Correlation(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Pearson's and Spearman's correlation of predictions with references, computed by scipy.

    >>> figures = Correlation().compute(predictions=[0.1, 0.2, 0.9], references=[1.0, 3.0, 2.0])
    >>> {name: round(figure, 4) for name, figure in figures.items()}
    {'pearson': 0.1147, 'spearman': 0.5}

    Everything stays in memory: nothing is fetched, and neither data nor locks are written to disk, so any
    number of processes can use it side by side, each on the full set of predictions (as Trainer gathers
    them). Raises EvaluationError where a correlation is undefined; it never gives NaN.
    """

    def __init__(self) -> None:
        super().__init__(keep_in_memory=True)

    def _build_data_dir(self) -> str:
        # evaluate makes a folder in its cache even when it keeps everything in memory.
        return ""

    def _info(self) -> evaluate.MetricInfo:
        # float64 features, and no format: float32 (what "numpy" gives) would round scores and create ties.
        column = datasets.Value("float64")
        return evaluate.MetricInfo(
            description="Pearson's and Spearman's correlation.",
            citation="",
            inputs_description="predictions and references: one number per pair.",
            features=datasets.Features({"predictions": column, "references": column}),
        )

    def _compute(self, predictions: list[float], references: list[float]) -> dict[str, float]:
        x, gold = np.asarray(predictions, dtype=np.float64), np.asarray(references, dtype=np.float64)
        return {name: correlation(x, gold) for name, correlation in CORRELATIONS.items()}


def _correlate(similarities: Mapping[str, Floats], gold: Array) -> dict[str, float]:
    """Every metric of CORRELATION_METRICS for similarities by name, each (N,), and gold scores (N,).

    Raises EvaluationError, naming the similarity, where a correlation is undefined.
    """
    metric = Correlation()
    figures = {}
    for name, values in similarities.items():
        try:
            figures[name] = metric.compute(predictions=values, references=gold)
        except EvaluationError as error:
            raise EvaluationError(f"{name} similarity: {error}") from error
    return {
        name: figures[similarity][correlation]
        for name, (correlation, similarity) in CORRELATION_METRICS.items()
    }


def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
    """Correlations of embedded pairs with their gold scores: the figures of an sts task, for any Trainer.

    prediction.predictions is (u, v), both (N, D); prediction.label_ids the gold scores (N,). Gives
    pearson_S and spearman_S for each similarity S: cosine, dot, euclidean, manhattan.

    Raises EvaluationError if the predictions are no such pair, or a correlation is undefined (embeddings
    or gold scores that are constant or not finite, fewer than two pairs).
    """
    pair = prediction.predictions
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        found = f"{len(pair)} arrays" if isinstance(pair, tuple | list) else f"one {type(pair).__name__}"
        raise EvaluationError(
            f"expected predictions (u, v), the embeddings of both sides of every pair, found {found}; "
            "let the prediction step return both"
        )
    gold = np.asarray(prediction.label_ids)
    left, right = np.asarray(pair[0]), np.asarray(pair[1])
    if gold.shape != left.shape[:1]:
        raise EvaluationError(
            f"expected one gold score for each of {len(left):,} pairs, found shape {gold.shape}; "
            "pass the score column as labels"
        )
    return _correlate(pair_similarities(left, right), gold)
