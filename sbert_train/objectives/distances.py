"""Distances between embeddings, pair by pair and each with each.

D dimensions, N and M rows. Every distance is exact, symmetric and 0 between equal vectors. At 0 the euclidean and
manhattan distance have a corner; their gradient there is 0, which is one of their subgradients, so that it is finite
and moves neither of two equal vectors. (`torch.nn.functional.pairwise_distance`, which is in use for such losses
elsewhere, adds 1e-6 to each component of the difference: its values are off by up to 1e-6 * D, depend on the order of
the two, and its gradient pushes equal vectors apart along (1, ..., 1).)
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Distance = Literal["cosine", "euclidean", "manhattan"]


def cosine(one: Tensor, two: Tensor) -> Tensor:
    """(..., D), (..., D) -> (...): 1 - cos, from 0 to 2."""
    return 1 - F.cosine_similarity(one, two, dim=-1)


def euclidean(one: Tensor, two: Tensor) -> Tensor:
    """(..., D), (..., D) -> (...): the length of the difference."""
    length: Tensor = torch.linalg.vector_norm(one - two, dim=-1)
    return length


def manhattan(one: Tensor, two: Tensor) -> Tensor:
    """(..., D), (..., D) -> (...): the sum of the absolute differences."""
    return (one - two).abs().sum(dim=-1)


def all_cosine(rows: Tensor, columns: Tensor) -> Tensor:
    """(N, D), (M, D) -> (N, M) cosine distances."""
    return 1 - F.normalize(rows, dim=-1) @ F.normalize(columns, dim=-1).T


def all_euclidean(rows: Tensor, columns: Tensor) -> Tensor:
    """(N, D), (M, D) -> (N, M) euclidean distances."""
    # From the products |a|^2 - 2ab + |b|^2, which cdist takes above 25 rows, near vectors come out up to 1e-3 apart.
    return torch.cdist(rows, columns, compute_mode="donot_use_mm_for_euclid_dist")


def all_manhattan(rows: Tensor, columns: Tensor) -> Tensor:
    """(N, D), (M, D) -> (N, M) manhattan distances."""
    return torch.cdist(rows, columns, p=1.0)


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine,
    "euclidean": euclidean,
    "manhattan": manhattan,
}
ALL_PAIRS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": all_cosine,
    "euclidean": all_euclidean,
    "manhattan": all_manhattan,
}
