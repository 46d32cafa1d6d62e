"""What became of each example of an eval set from one model to another: which got better, which worse, by how much.

Shapes: N examples.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from sbert_train.evaluation.metrics import CORRELATION_METRICS, Array, Floats
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.samples import BinarySample, ClassSample, PairSample, QuerySample
from sbert_train.evaluation.thresholds import THRESHOLD_METRICS


@dataclass(frozen=True, eq=False)
class Changes:
    """The examples of an eval set under two models."""

    figure: str
    """What is told of an example under a model: the name of a similarity or of a metric, or `class`."""
    before: Array
    after: Array
    """That figure, each (N,)."""
    gold: Array | None
    """What it should be like, (N,): gold scores, labels or classes; None where larger is simply better."""
    gain: Floats
    """(N,): above 0 where an example got better, below where it got worse."""


def changes(before: TaskResult, after: TaskResult) -> Changes | None:
    """What became of each example; None for a task that judges no single one.

    - Gold scores: how much nearer to its rank by gold the rank of the pair by its similarity came, as a share of the
      N - 1 ranks that it could move; ties share the mean of their ranks.
    - Labels 0 and 1: by how much the similarity moved towards the label.
    - Queries: by how much the query's primary metric rose.
    - Classes: 1 where a wrong class became right, -1 where a right one became wrong.
    """
    metric = before.primary_metric
    match before.sample, after.sample:
        case PairSample() as one, PairSample() as other:
            name = CORRELATION_METRICS[metric][1]
            pair = one.similarities[name], other.similarities[name]
            distances = [np.abs(rankdata(values) - rankdata(one.gold)) for values in pair]
            gain = (distances[0] - distances[1]) / max(1, one.size - 1)
            return Changes(name, *pair, one.gold, gain)
        case BinarySample() as one, BinarySample() as other:
            name = THRESHOLD_METRICS[metric][1]
            pair = one.similarities[name], other.similarities[name]
            gain = np.where(one.labels == 1, 1.0, -1.0) * (pair[1] - pair[0])
            return Changes(name, *pair, one.labels, gain)
        case QuerySample() as one, QuerySample() as other:
            pair = one.values[metric], other.values[metric]
            return Changes(metric, *pair, None, pair[1] - pair[0])
        case ClassSample() as one, ClassSample() as other:
            right = [
                np.asarray(found == one.gold, dtype=np.float64) for found in (one.predicted, other.predicted)
            ]
            return Changes("class", one.predicted, other.predicted, one.gold, right[1] - right[0])
        case _:
            return None


def most_changed(gain: Floats, most: int) -> tuple[list[int], list[int]]:
    """The numbers of the examples that gained most, and of those that lost most, the largest change first; of equal
    ones the first in the set. What did not change is in neither."""
    order = np.argsort(-gain, kind="stable")
    better = [int(i) for i in order[:most] if gain[i] > 0]
    order = np.argsort(gain, kind="stable")
    return better, [int(i) for i in order[:most] if gain[i] < 0]
