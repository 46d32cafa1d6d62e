"""What a task keeps of its examples, so that a metric can be computed again on resamples of them.

Shapes: N examples (pairs or queries), R resamples, M metrics, G distinct values.
A resample is a row of counts (R, N) float64: how often each example was drawn. Counts, unlike indices,
let all resamples be ranked from one sort of the examples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sbert_train.evaluation.classes import CLASS_METRICS
from sbert_train.evaluation.clusters import CLUSTER_METRICS, agreement
from sbert_train.evaluation.metrics import CONSTANT_VALUES, CORRELATION_METRICS, Array, Floats
from sbert_train.evaluation.thresholds import THRESHOLD_FIGURES, THRESHOLD_METRICS, cut


class Sample(Protocol):
    """The examples of a finished task."""

    @property
    def size(self) -> int:
        """N, the number of examples that can be drawn."""

    def resampled(self, metrics: Sequence[str], counts: Floats) -> Floats:
        """The metrics (M names) on each resample of counts (R, N), as (R, M); NaN where undefined."""


@dataclass(frozen=True, eq=False)
class QuerySample:
    """One value of each metric per query, each (N,): a metric's figure is their mean."""

    values: Mapping[str, Floats]

    @property
    def size(self) -> int:
        return len(next(iter(self.values.values())))

    def resampled(self, metrics: Sequence[str], counts: Floats) -> Floats:
        """See Sample; a mean is always defined."""
        means: Floats = counts @ np.stack([self.values[metric] for metric in metrics], axis=1) / self.size
        return means


@dataclass(frozen=True, eq=False)
class PairSample:
    """Gold scores (N,) and similarities by name, each (N,): a metric correlates the two."""

    gold: Floats
    similarities: Mapping[str, Floats]

    @property
    def size(self) -> int:
        return len(self.gold)

    def resampled(self, metrics: Sequence[str], counts: Floats) -> Floats:
        """See Sample; undefined where only one distinct gold score, or one similarity, was drawn."""
        wanted = [CORRELATION_METRICS[metric] for metric in metrics]
        gold = {name: CENTRED[name](self.gold, counts) for name in {correlation for correlation, _ in wanted}}
        figures = []
        for correlation, similarity in wanted:
            predictions = CENTRED[correlation](self.similarities[similarity], counts)
            figures.append(_correlation(predictions, gold[correlation], counts))
        return np.stack(figures, axis=1)


@dataclass(frozen=True, eq=False)
class BinarySample:
    """Labels (N,) of 0 and 1 and similarities by name, each (N,): a metric tells the labels apart by a threshold."""

    labels: Array
    similarities: Mapping[str, Floats]

    @property
    def size(self) -> int:
        return len(self.labels)

    def resampled(self, metrics: Sequence[str], counts: Floats) -> Floats:
        """See Sample; average precision and F1 are undefined where no pair with label 1 was drawn."""
        wanted = [THRESHOLD_METRICS[metric] for metric in metrics]
        figures = {}
        for similarity in dict.fromkeys(similarity for _, similarity in wanted):
            cuts = cut(self.similarities[similarity], self.labels, counts)
            for figure in (figure for figure, of in wanted if of == similarity):
                figures[figure, similarity] = THRESHOLD_FIGURES[figure](cuts)
        return np.stack([figures[one] for one in wanted], axis=1)


@dataclass(frozen=True, eq=False)
class ClassSample:
    """Classes (N,) and predicted classes (N,)."""

    gold: Array
    predicted: Array

    @property
    def size(self) -> int:
        return len(self.gold)

    def resampled(self, metrics: Sequence[str], counts: Floats) -> Floats:
        """See Sample; always defined."""
        return np.stack([CLASS_METRICS[name](self.gold, self.predicted, counts) for name in metrics], axis=1)


@dataclass(frozen=True, eq=False)
class ClusterSample:
    """Labels (N,) and clusters (N,): the clusters stay, whatever texts are drawn."""

    labels: Array
    clusters: Array

    @property
    def size(self) -> int:
        return len(self.labels)

    def resampled(self, metrics: Sequence[str], counts: Floats) -> Floats:
        """See Sample; always defined."""
        found = agreement(self.labels, self.clusters, counts)
        return np.stack([CLUSTER_METRICS[name](found) for name in metrics], axis=1)


def centred_values(values: Floats, counts: Floats) -> Floats:
    """Values (N,) minus their mean in each resample of counts (R, N), as (R, N)."""
    deviations = values - (counts @ values / len(values))[:, None]
    # A mean of equal values can miss them by a rounding error; a constant resample must show as zeros.
    deviations[np.abs(deviations) <= CONSTANT_VALUES * np.abs(values).max()] = 0.0
    return deviations


def centred_ranks(values: Floats, counts: Floats) -> Floats:
    """Ranks of values (N,) minus their mean (N + 1) / 2 in each resample of counts (R, N), as (R, N).

    Ties, which include every example that was drawn twice, share the mean of their ranks. In the sorted
    order a group of g tied draws that ends at rank e has the mean rank e - (g - 1) / 2.
    """
    distinct, group_of = np.unique(values, return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], np.arange(len(distinct)))
    drawn = np.add.reduceat(counts[:, order], starts, axis=1)  # (R, G)
    ranks = np.cumsum(drawn, axis=1) - (drawn - 1) / 2
    centred: Floats = (ranks - (len(values) + 1) / 2)[:, group_of]
    return centred


CENTRED: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "pearson": centred_values,
    "spearman": centred_ranks,
}


def _correlation(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Correlation of centred x and y, each (R, N), weighted by counts (R, N): (R,), NaN where undefined."""
    weighted = counts * x
    products = np.einsum("rn,rn->r", weighted, y)
    scales = np.sqrt(np.einsum("rn,rn->r", weighted, x)) * np.sqrt(np.einsum("rn,rn,rn->r", counts, y, y))
    figures: Floats = np.divide(products, scales, out=np.full(len(x), np.nan), where=scales > 0)
    return figures
