"""How often predicted classes are right.

Shapes: N pairs, R resamples, C classes.
gold and predicted are classes (N,) int, and counts (R, N) says how often each pair was drawn. Figures are (R,)
float64 in [0, 1].
"""

from collections.abc import Callable, Mapping

import numpy as np

from sbert_train.evaluation.metrics import Array, Floats


def accuracy(gold: Array, predicted: Array, counts: Floats) -> Floats:
    """Share of the pairs whose predicted class is theirs."""
    shares: Floats = counts @ (gold == predicted) / len(gold)
    return shares


def macro_f1(gold: Array, predicted: Array, counts: Floats) -> Floats:
    """F1 of each class, 2 right / (predicted + gold), averaged over the classes that were drawn or predicted.

    A rare class counts as much as a frequent one. Equal to scikit-learn's f1_score with average="macro".
    """
    classes = np.arange(max(gold.max(), predicted.max()) + 1)
    is_gold, is_predicted = gold[:, None] == classes, predicted[:, None] == classes  # (N, C)
    right = counts @ (is_gold & is_predicted)
    both = counts @ is_gold + counts @ is_predicted  # (R, C)
    f1 = np.divide(2 * right, both, out=np.zeros_like(both), where=both > 0)
    averages: Floats = f1.sum(axis=1) / np.count_nonzero(both, axis=1)
    return averages


CLASS_METRICS: Mapping[str, Callable[[Array, Array, Floats], Floats]] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
}
