"""Among which texts an anchor picks its positive: those of the whole batch, less those that are no negatives.

B rows of this process, M rows of all processes (M = B with one), K negatives of a row, C = M * (1 + K)
candidates: first the positives of all rows, then the negatives of the first row, and so on. D dimensions.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.gathering import gather_rows

Hardness = Literal["none", "in_batch", "hard", "all"]
"""Which negatives weigh more the more similar they are: none, those of other rows, the row's own, or both."""
MarginStrategy = Literal["absolute", "relative"]
"""A margin as it is, or as a part of the similarity that it is taken from."""


def of_all_processes(batch: RoleEmbeddings, roles: Collection[str]) -> RoleEmbeddings:
    """The rows of all processes: the vectors and references of some roles, and the keys of all."""
    return RoleEmbeddings(
        vectors={role: gather_rows(rows) for role, rows in batch.vectors.items() if role in roles},
        text_keys={role: gather_rows(keys) for role, keys in batch.text_keys.items()},
        reference={role: gather_rows(rows) for role, rows in batch.reference.items() if role in roles},
    )


def candidates_of(roles: Mapping[str, Tensor]) -> Tensor:
    """Positive (M, ...) and negative (M, K, ...), if there is any -> (C, ...)."""
    if "negative" not in roles:
        return roles["positive"]
    return torch.cat([roles["positive"], roles["negative"].flatten(0, 1)])


def equal_to_positive(batch: RoleEmbeddings, everyone: RoleEmbeddings) -> Tensor:
    """(B, C): where a candidate is the text of the anchor or of its positive, or the positive of an equal anchor."""
    anchors, positives = (batch.text_keys[role][:, None] for role in ("anchor", "positive"))
    candidates = candidates_of(everyone.text_keys)
    same_anchor = anchors == everyone.text_keys["anchor"]
    also_positive = F.pad(same_anchor, (0, len(candidates) - same_anchor.shape[1]))
    return also_positive | (candidates == positives) | (candidates == anchors)


def equal_to_anchor(batch: RoleEmbeddings, everyone: RoleEmbeddings) -> Tensor:
    """(B, M): where an anchor is the text of the positive or of its anchor, or the anchor of an equal positive."""
    anchors, positives = (batch.text_keys[role][:, None] for role in ("anchor", "positive"))
    candidates = everyone.text_keys["anchor"]
    same_positive = positives == everyone.text_keys["positive"]
    return same_positive | (candidates == anchors) | (candidates == positives)


def nearer_than_own(
    queries: Tensor, candidates: Tensor, own: Tensor, margin: float, strategy: MarginStrategy
) -> Tensor:
    """Where a candidate is more similar to a query than the query's own, less a margin: a likely false negative.

    Solatorio 2024, "GISTEmbed", without a margin; Moreira et al. 2024, "NV-Retriever", for the margin, absolute
    (TopK-MarginPos) or as a part of the similarity (TopK-PercPos).

    Args:
        queries: (B, Dr). candidates: (C, Dr), both as the guide has them. own: (B,) int64, the place of each query's.

    Returns:
        (B, C) bool.
    """
    with torch.no_grad():
        similarities = F.normalize(queries, dim=-1) @ F.normalize(candidates, dim=-1).T
        to_own = similarities.gather(1, own[:, None])
        return similarities > to_own - (margin if strategy == "absolute" else margin * to_own.abs())


def weighted_by_hardness(own: Tensor, rows: int, candidates: int, hardness: Hardness) -> Tensor:
    """Which negatives weigh more the more similar they are.

    Args:
        own: (B,) int64, the number of each row among those of all processes.
        rows: M. candidates: C.
        hardness: in_batch: those of other rows; hard: the row's own hard negatives; all: both.

    Returns:
        (B, C) bool; never a row's own positive.
    """
    places = torch.arange(candidates, device=own.device)
    is_hard = places >= rows
    of_row = torch.where(is_hard, (places - rows) // max(candidates // rows - 1, 1), places)
    is_own = of_row == own[:, None]
    if hardness == "hard":
        return is_own & is_hard
    return ~is_own if hardness == "in_batch" else ~is_own | is_hard
