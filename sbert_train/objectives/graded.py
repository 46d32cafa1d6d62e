"""Graded pairs: their similarities are to rank them as their scores do, in whatever unit.

B rows, D dimensions.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.precision import in_float32


@in_float32
def cosent(batch: RoleEmbeddings, *, scale: float = 20.0) -> Tensor:
    """A smooth count of the pairs of rows that cosines rank the other way than scores do.

        L = log(1 + sum_{i, j: y_i > y_j} exp(s * (cos(u_j, v_j) - cos(u_i, v_i))))

    Su 2022, "CoSENT: a more effective sentence embedding scheme than Sentence-BERT" (kexue.fm/archives/8847).

    Args:
        batch: roles sentence1 and sentence2; labels (B,) scores in any unit, of which the order alone counts.
        scale: s > 0, the factor of the cosines; 1/temperature.

    Returns:
        A scalar, at least 0; 0 when no two scores differ.
    """
    similarities = F.cosine_similarity(batch.vectors["sentence1"], batch.vectors["sentence2"])
    return _misranking(similarities * scale, batch.labels)


@in_float32
def angle(batch: RoleEmbeddings, *, scale: float = 20.0) -> Tensor:
    """`cosent` with the angle of complex vectors in place of the cosine.

    The halves of a unit vector are the real and the imaginary part of D/2 complex numbers; a 0 is added to an odd D.
    With z of u and w of v, the similarity is |sum_k Re(z_k conj(w_k)) + Im(z_k conj(w_k))| = |cos(u, v) + sin(u, v)|.
    Li & Li 2023, "AnglE-optimized Text Embeddings", the angle objective, with the absolute value as in their code and
    in sentence-transformers' AnglELoss. As it is absolute, opposite vectors count as similar as equal ones.

    Args:
        batch: as in `cosent`.
        scale: s > 0, the factor of the similarities; 1/temperature.

    Returns:
        A scalar, at least 0; 0 when no two scores differ.
    """
    real1, imaginary1 = _complex(batch.vectors["sentence1"])
    real2, imaginary2 = _complex(batch.vectors["sentence2"])
    cosines = (real1 * real2 + imaginary1 * imaginary2).sum(dim=1)
    sines = (imaginary1 * real2 - real1 * imaginary2).sum(dim=1)
    return _misranking((cosines + sines).abs() * scale, batch.labels)


def _complex(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """(B, D) -> the real and the imaginary part (B, D/2) of the vectors, scaled to length 1."""
    real, imaginary = F.normalize(F.pad(vectors, (0, vectors.shape[1] % 2)), dim=1).chunk(2, dim=1)
    return real, imaginary


def _misranking(similarities: Tensor, scores: Tensor | None) -> Tensor:
    """(B,), (B,) -> log(1 + sum over i, j with scores_i > scores_j of exp(similarities_j - similarities_i))."""
    assert scores is not None
    differences = similarities - similarities[:, None]
    ranked = scores[:, None] > scores
    exponents = differences.masked_fill(~ranked, -torch.inf).flatten()
    return torch.logsumexp(F.pad(exponents, (1, 0)), dim=0)  # the 0 that is added is the 1 in the sum
