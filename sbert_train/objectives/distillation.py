"""Distillation: embeddings, or margins of similarities, are to equal those of a teacher.

B rows, K negatives of a row, D dimensions of the embeddings, Dr of the teacher's, N texts.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from sbert_train.errors import DataError, ModelError
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.precision import in_float32


@in_float32
def embedding_distillation(batch: RoleEmbeddings, *, distance: Literal["mse", "cosine"] = "mse") -> Tensor:
    """The mean distance of the embeddings of all texts of all roles to a teacher's of the same texts.

    mse: the mean over dimensions of the squared difference. Reimers & Gurevych 2020, "Making Monolingual Sentence
    Embeddings Multilingual using Knowledge Distillation", equation 1. cosine: 1 - cos, which leaves lengths free.

    Each text counts the same, so K negatives weigh as much as K roles of one text each.

    Args:
        batch: any roles, with a `reference` of the same shape for each; a teacher of more dimensions is projected
            first, see `principal_components`.

    Returns:
        A scalar, at least 0.

    Raises:
        ModelError: the teacher's embeddings have another shape than these.
    """
    shapes = {role: tuple(vectors.shape) for role, vectors in batch.vectors.items()}
    found = {role: tuple(vectors.shape) for role, vectors in batch.reference.items() if role in shapes}
    if found != shapes:
        raise ModelError(
            f"embedding_distillation compares shape with shape: expected embeddings of a teacher {shapes}; found "
            f"{found or 'none'}. A teacher of more dimensions has to be projected, one of fewer cannot be learnt from"
        )
    embeddings = torch.cat([vectors.flatten(0, -2) for vectors in batch.vectors.values()])
    teacher = torch.cat([batch.reference[role].flatten(0, -2) for role in batch.vectors])
    if distance == "mse":
        return F.mse_loss(embeddings, teacher)
    return (1 - F.cosine_similarity(embeddings, teacher)).mean()


@in_float32
def margin_mse(batch: RoleEmbeddings, *, similarity: Literal["dot", "cosine"] = "dot") -> Tensor:
    """The mean squared error of the margins by which positives are more similar than negatives.

        L = 1/BK sum_ik ((sim(a_i, p_i) - sim(a_i, n_ik)) - (t(a_i, p_i) - t(a_i, n_ik)))^2

    with t the scores of a teacher. Hofstätter et al. 2020, "Improving Efficient Neural Ranking Models with
    Cross-Architecture Knowledge Distillation", the Margin-MSE loss.

    Args:
        batch: roles anchor, positive, and one or several negative; labels (B,) teacher's margins of one negative,
            (B, K) of each negative, or (B, 1 + K) its scores of the positive and of each negative.

    Returns:
        A scalar, at least 0.

    Raises:
        DataError: labels of another shape.
    """
    assert batch.labels is not None
    anchor, positive, negative = (batch.vectors[role] for role in ("anchor", "positive", "negative"))
    if similarity == "cosine":
        anchor, positive, negative = (
            F.normalize(vectors, dim=-1) for vectors in (anchor, positive, negative)
        )
    to_positive = (anchor * positive).sum(dim=-1, keepdim=True)
    to_negative = (anchor[:, None] * negative).sum(dim=-1)
    return F.mse_loss(to_positive - to_negative, _margins(batch.labels.float(), to_negative.shape[1]))


def _margins(labels: Tensor, negatives: int) -> Tensor:
    """The teacher's margins (B, K), from margins or from scores."""
    margins = labels[:, None] if labels.ndim == 1 else labels
    if margins.shape[1:] == (1 + negatives,):
        return margins[:, :1] - margins[:, 1:]
    if margins.shape[1:] != (negatives,):
        raise DataError(
            f"margin_mse: expected for each row {negatives} scores, the margins of its {negatives} negatives, or "
            f"{1 + negatives}, those of its positive and of each negative; found {margins.shape[1:].numel()}"
        )
    return margins


def principal_components(embeddings: NDArray[np.floating], dimension: int) -> NDArray[np.float32]:
    """The projection onto those directions in which embeddings vary most.

    A teacher's (N, Dr) embeddings times this projection are its targets for an encoder of D dimensions. The directions
    are the eigenvectors of the covariance with the largest eigenvalues; of the two signs of each that is taken which
    makes its largest component positive, so that the same embeddings give the same projection.

    The mean is left out of the covariance, but is not to be subtracted from what is projected: dot products and
    cosines of the targets should be near those of the teacher, and they are of vectors from the origin. A projection
    changes them by what lies outside of its D directions; moving the origin would change them all.

    Args:
        embeddings: (N, Dr), N > D; some ten thousand texts of the kind to be trained on are plenty.
        dimension: D, at most Dr.

    Returns:
        (Dr, D) float32 with orthonormal columns, the direction of the largest variance first, so that its first d
        columns are the projection to d dimensions.

    Raises:
        ModelError: D > Dr.
        DataError: there are not more than D texts.
    """
    count, width = embeddings.shape
    if dimension > width:
        raise ModelError(
            f"a teacher of {width} dimensions has no {dimension} principal components; take a wider teacher, or an "
            f"encoder of at most {width} dimensions"
        )
    if count <= dimension:
        raise DataError(
            f"the {dimension} principal components of a teacher need more than {dimension} texts; found {count}"
        )
    centred = embeddings.astype(np.float64)
    centred -= centred.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    leading = directions[:, ::-1][:, :dimension]
    largest = leading[np.abs(leading).argmax(axis=0), np.arange(dimension)]
    projection: NDArray[np.float32] = (leading * np.sign(largest)).astype(np.float32)
    return projection
