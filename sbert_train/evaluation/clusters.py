"""How well clusters and labels of the same texts agree.

Shapes: N texts, R resamples, G groups (labels, clusters, or pairs of both that occur).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from sbert_train.evaluation.metrics import Array, Floats


@dataclass(frozen=True, eq=False)
class Agreement:
    """Homogeneity and completeness of clusters, each (R,) in [0, 1].

    Rosenberg and Hirschberg 2007, "V-Measure: A Conditional Entropy-Based External Cluster Evaluation Measure",
    equations 1 and 2, by the mutual information I: homogeneity is I / H(labels), 1 where there is one label only, and
    completeness I / H(clusters), 1 where there is one cluster only.
    """

    homogeneity: Floats
    completeness: Floats

    @property
    def v_measure(self) -> Floats:
        """Their harmonic mean (equation 3 with beta = 1), 0 where both are."""
        product, total = self.homogeneity * self.completeness, self.homogeneity + self.completeness
        means: Floats = np.divide(2 * product, total, out=np.zeros_like(total), where=total > 0)
        return means


def agreement(labels: Array, clusters: Array, counts: Floats) -> Agreement:
    """How well labels (N,) and clusters (N,), numbered from 0, agree on texts drawn as often as counts (R, N) say."""
    cells = labels * (clusters.max() + 1) + clusters
    of_labels, of_clusters, of_both = (_entropy(groups, counts) for groups in (labels, clusters, cells))
    shared = of_labels + of_clusters - of_both
    return Agreement(_share(shared, of_labels), _share(shared, of_clusters))


CLUSTER_METRICS: Mapping[str, Callable[[Agreement], Floats]] = {
    "v_measure": lambda found: found.v_measure,
    "homogeneity": lambda found: found.homogeneity,
    "completeness": lambda found: found.completeness,
}


def _entropy(groups: Array, counts: Floats) -> Floats:
    """Entropy of the groups (N,) in nats, (R,); exactly 0 where all that was drawn is of one group: its share is 1."""
    order = np.argsort(groups, kind="stable")
    ranked = groups[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    drawn = np.add.reduceat(counts[:, order], starts, axis=1)  # (R, G)
    shares = drawn / drawn.sum(axis=1, keepdims=True)
    entropies: Floats = -xlogy(shares, shares).sum(axis=1)
    return entropies


def _share(shared: Floats, whole: Floats) -> Floats:
    shares = np.divide(shared, whole, out=np.ones_like(whole), where=whole > 0)
    return np.clip(shares, 0.0, 1.0)  # a difference of entropies can miss the ends by a rounding error
