"""How well a threshold on a similarity tells pairs that belong together from those that do not.

Shapes: N pairs, R resamples, G distinct similarities.
A pair is called similar where its similarity is at or above the threshold, so that pairs of one similarity are
called alike: a threshold lies at one of the G distinct similarities, or above them all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sbert_train.evaluation.metrics import SIMILARITIES, Array, Floats


@dataclass(frozen=True, eq=False)
class Cuts:
    """What lies at or above each distinct similarity, highest first, in each of R resamples."""

    similarities: Floats
    """(G,) distinct, descending."""
    found: Floats
    """(R, G) pairs at or above."""
    true: Floats
    """(R, G) pairs with label 1 at or above."""

    @property
    def pairs(self) -> Floats:
        """(R,) pairs of a resample."""
        return self.found[:, -1]

    @property
    def positives(self) -> Floats:
        """(R,) pairs with label 1."""
        return self.true[:, -1]


def cut(similarities: Floats, labels: Array, counts: Floats) -> Cuts:
    """Similarities (N,) and labels (N,) of 0 and 1, each pair drawn as often as counts (R, N) say -> their cuts."""
    order = np.argsort(-similarities, kind="stable")
    ranked = similarities[order]
    last_of_its_kind = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    drawn = counts[:, order]
    found = np.cumsum(drawn, axis=1)[:, last_of_its_kind]
    drawn *= labels[order]
    return Cuts(ranked[last_of_its_kind], found, np.cumsum(drawn, axis=1)[:, last_of_its_kind])


# --- figures -----------------------------------------------------------------------------------------
# (R,) float64 in [0, 1]; average precision and F1 are NaN where a resample has no pair with label 1.


def average_precision(cuts: Cuts) -> Floats:
    """Sum over the cuts of precision, each times the share of the positives that it adds.

    Without interpolation, and with all pairs of a tie added at once, as scikit-learn has it.
    """
    precisions = _share(cuts.true, cuts.found, otherwise=0.0)
    added = np.diff(cuts.true, axis=1, prepend=0.0)
    return _share(np.einsum("rg,rg->r", added, precisions), cuts.positives, otherwise=np.nan)


def best_f1(cuts: Cuts) -> Floats:
    """The highest F1, the harmonic mean of precision and recall, that a threshold reaches."""
    figures: Floats = f1_of_cuts(cuts).max(axis=1)
    return figures


def best_accuracy(cuts: Cuts) -> Floats:
    """The highest share of pairs that a threshold calls right; one above all similarities may be the best."""
    figures: Floats = np.maximum(accuracy_of_cuts(cuts).max(axis=1), accuracy_above_all(cuts))
    return figures


def f1_of_cuts(cuts: Cuts) -> Floats:
    """F1 of each cut, (R, G): 2 true / (found + positives), which equals the harmonic mean."""
    positives = cuts.positives[:, None]
    return _share(2 * cuts.true, np.where(positives > 0, cuts.found + positives, 0.0), otherwise=np.nan)


def accuracy_of_cuts(cuts: Cuts) -> Floats:
    """Accuracy of each cut, (R, G): the positives at or above and the negatives below, of all pairs."""
    negatives = cuts.pairs - cuts.positives
    shares: Floats = (2 * cuts.true - cuts.found + negatives[:, None]) / cuts.pairs[:, None]
    return shares


def accuracy_above_all(cuts: Cuts) -> Floats:
    """Accuracy of a threshold that calls no pair similar, (R,)."""
    shares: Floats = (cuts.pairs - cuts.positives) / cuts.pairs
    return shares


THRESHOLD_FIGURES: Mapping[str, Callable[[Cuts], Floats]] = {
    "ap": average_precision,
    "f1": best_f1,
    "accuracy": best_accuracy,
}

# name of a metric -> (name of its figure, name of its similarity)
THRESHOLD_METRICS: Mapping[str, tuple[str, str]] = {
    f"{figure}_{similarity}": (figure, similarity)
    for similarity in SIMILARITIES
    for figure in THRESHOLD_FIGURES
}


# --- the thresholds themselves -----------------------------------------------------------------------


def at_best_f1(cuts: Cuts) -> dict[str, float]:
    """The highest threshold of the best F1, and precision and recall there; of a single resample."""
    best = int(f1_of_cuts(cuts)[0].argmax())
    true = cuts.true[0, best]
    return {
        "threshold": _threshold(cuts, best),
        "precision": float(true / cuts.found[0, best]),
        "recall": float(true / cuts.positives[0]),
    }


def at_best_accuracy(cuts: Cuts) -> dict[str, float]:
    """The highest threshold of the best accuracy; of a single resample."""
    accuracies = accuracy_of_cuts(cuts)[0]
    if accuracy_above_all(cuts)[0] >= accuracies.max():
        # Similarities have the precision of float32, and so has the next number above the highest.
        return {"threshold": float(np.nextafter(np.float32(cuts.similarities[0]), np.float32(np.inf)))}
    return {"threshold": _threshold(cuts, int(accuracies.argmax()))}


def _threshold(cuts: Cuts, place: int) -> float:
    """Halfway to the next lower similarity, so that other pairs fall on the side that they are nearer to."""
    return float(cuts.similarities[place : place + 2].mean())


def _share(parts: Floats, wholes: Floats, *, otherwise: float) -> Floats:
    """parts / wholes, and `otherwise` where the whole is nothing."""
    shares: Floats = np.divide(parts, wholes, out=np.full(np.shape(parts), otherwise), where=wholes > 0)
    return shares
