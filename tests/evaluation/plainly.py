"""Figures as their definitions read, in plain loops: what the tests hold the fast ones against."""

from dataclasses import dataclass

import numpy as np

from sbert_train.evaluation.metrics import Array


@dataclass(frozen=True)
class Best:
    """The best that any threshold on a similarity reaches; a pair at or above it is called similar."""

    accuracy: float
    f1: float


def best_by_threshold(scores: Array, labels: Array) -> Best:
    """Try every threshold: each score, and one above them all."""
    accuracies, f1s = [], [0.0]
    for threshold in [*scores, scores.max() + 1]:
        called = scores >= threshold
        accuracies.append(float(np.mean(called == labels)))
        if (called & (labels == 1)).any():
            precision, recall = labels[called].mean(), called[labels == 1].mean()
            f1s.append(float(2 * precision * recall / (precision + recall)))
    return Best(max(accuracies), max(f1s))
