"""Contrastive losses: pairs of label 1 are drawn together, pairs of label 0 pushed apart up to a margin. B rows."""

import torch
from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.distances import DISTANCES, Distance
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.precision import in_float32


@in_float32
def contrastive(batch: RoleEmbeddings, *, distance: Distance = "cosine", margin: float = 0.5) -> Tensor:
    """The mean over pairs of the squared distance, or of the square of what it lacks to the margin.

        L = 1/B sum_i y_i d_i^2 + (1 - y_i) max(margin - d_i, 0)^2

    Hadsell et al. 2006, "Dimensionality Reduction by Learning an Invariant Mapping", equation 4, who (like
    sentence-transformers) take half of it and write 1 - y for our y.

    Args:
        batch: roles sentence1 and sentence2; labels (B,), 1 for pairs that belong together, 0 for others.
        margin: the distance beyond which pairs of label 0 are left alone, in the unit of the distance.

    Returns:
        A scalar, at least 0.
    """
    assert batch.labels is not None
    together, distances = batch.labels.float(), _distances(batch, distance)
    return (together * distances**2 + (1 - together) * F.relu(margin - distances) ** 2).mean()


@in_float32
def online_contrastive(
    batch: RoleEmbeddings, *, distance: Distance = "cosine", margin: float = 0.5
) -> Tensor:
    """The contrastive loss of a batch's hard pairs alone, summed over them.

    Hard are pairs of label 0 that are nearer than the farthest of label 1, and pairs of label 1 that are farther than
    the nearest of label 0. In a batch of one label they are those of label 0 nearer, or of label 1 farther, than their
    own mean. This is sentence-transformers' OnlineContrastiveLoss; no paper describes it.

    Args:
        batch: roles sentence1 and sentence2; labels (B,), 1 for pairs that belong together, 0 for others.
        margin: as in `contrastive`.

    Returns:
        A scalar, at least 0. It is a sum, so it grows with the batch.
    """
    assert batch.labels is not None
    distances = _distances(batch, distance)
    together, apart = distances[batch.labels == 1], distances[batch.labels == 0]
    with torch.no_grad():
        farthest = together.max() if len(together) else apart.mean()
        nearest = apart.min() if len(apart) else together.mean()
    hard_together, hard_apart = together[together > nearest], apart[apart < farthest]
    return (hard_together**2).sum() + (F.relu(margin - hard_apart) ** 2).sum()


def _distances(batch: RoleEmbeddings, distance: Distance) -> Tensor:
    return DISTANCES[distance](batch.vectors["sentence1"], batch.vectors["sentence2"])
