"""Triplets: an anchor is to be nearer to its positive than to a negative, by a margin.

B rows, K negatives of a row, D dimensions.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.distances import ALL_PAIRS, DISTANCES, Distance
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.precision import in_float32


@in_float32
def triplet(batch: RoleEmbeddings, *, distance: Distance = "euclidean", margin: float = 1.0) -> Tensor:
    """The mean by which triplets miss the margin.

        L = 1/BK sum_ik max(d(a_i, p_i) - d(a_i, n_ik) + margin, 0)

    Reimers & Gurevych 2019, "Sentence-BERT", section 3, "Triplet Objective Function", with their margin of 1.

    Args:
        batch: roles anchor, positive, and one or several negative.
        margin: in the unit of the distance; a cosine distance is at most 2, and so are lengths between unit vectors.

    Returns:
        A scalar, at least 0.
    """
    measure = DISTANCES[distance]
    anchor = batch.vectors["anchor"]
    to_positive = measure(anchor, batch.vectors["positive"])[:, None]
    to_negative = measure(anchor[:, None], batch.vectors["negative"])
    return F.relu(to_positive - to_negative + margin).mean()


@in_float32
def batch_triplet(
    batch: RoleEmbeddings,
    *,
    mining: Literal["hard", "semi_hard"] = "hard",
    distance: Distance = "euclidean",
    margin: float = 1.0,
) -> Tensor:
    """The triplet loss over triplets that are found in the batch: texts of one label are each other's positives.

    hard: for each text its farthest positive and its nearest negative; the mean over texts. Hermans et al. 2017, "In
    Defense of the Triplet Loss for Person Re-Identification", equation 5.

    semi_hard: for each text and each of its positives the nearest of the negatives that are farther than that
    positive; where none is farther, the farthest negative; the mean over such pairs. Schroff et al. 2015, "FaceNet",
    section 3.2 (who square the distances).

    A text without a positive or without a negative in the batch has no triplet, so it takes no part, and a batch
    without any triplet has loss 0. sentence-transformers' losses equal this one where every text has both. Where not,
    its hard one takes the text itself for a positive at distance 0, counts a text without negatives as a constant
    `margin`, and averages over all texts; its semi-hard one, in a batch of one label, draws all texts together as if
    each had a negative at distance 0.

    Args:
        batch: role sentence1; labels (B,) classes.
        margin: in the unit of the distance.

    Returns:
        A scalar, at least 0.
    """
    assert batch.labels is not None
    texts, labels = batch.vectors["sentence1"], batch.labels
    distances = ALL_PAIRS[distance](texts, texts)
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    violations, exist = (_hard if mining == "hard" else _semi_hard)(distances, positive, ~same)
    return F.relu(violations + margin)[exist].sum() / exist.sum().clamp(min=1)


def _hard(distances: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """(B, B) each -> (B,) d(a, p) - d(a, n) of each text's hardest triplet, and (B,) whether it has one."""
    farthest = distances.masked_fill(~positive, -torch.inf).max(dim=1).values
    nearest = distances.masked_fill(~negative, torch.inf).min(dim=1).values
    return farthest - nearest, positive.any(dim=1) & negative.any(dim=1)


def _semi_hard(distances: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """(B, B) each -> (B, B) d(a, p) - d(a, n) of each pair's semi-hard triplet, and (B, B) whether it has one."""
    with torch.no_grad():
        rising, columns = distances.masked_fill(~negative, torch.inf).sort(dim=1)
        # The first negative that is farther; past the end, or among those filled in, when there is none.
        place = torch.searchsorted(rising, distances, right=True).clamp(max=len(rising) - 1)
        farthest = distances.masked_fill(~negative, -torch.inf).argmax(dim=1, keepdim=True)
        chosen = torch.where(rising.gather(1, place).isfinite(), columns.gather(1, place), farthest)
    return distances - distances.gather(1, chosen), positive & negative.any(dim=1, keepdim=True)
