"""A loss over all pairs of rows and candidates without all pairs in memory.

B rows, C candidates.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sbert_train.objectives.embeddings import RoleEmbeddings

PAIRS = 2**22
"""Pairs of a row and a candidate that are in memory at once: 16 MiB for each float32 matrix of them."""


def sum_over_rows(
    loss: Callable[[RoleEmbeddings, Tensor], Tensor], batch: RoleEmbeddings, own: Tensor, candidates: int
) -> Tensor:
    """The sum of a loss over the rows of a batch.

    Where B x C is more than PAIRS, chunks of rows are taken one after the other, and each is computed again when the
    gradient comes back, so that no chunk's matrices outlive it.

    Args:
        loss: (some rows, their part of own) -> the sum of their losses; nothing random in it.
        own: (B,) int64.
        candidates: C.
    """
    rows = max(1, PAIRS // candidates)
    if len(own) <= rows:
        return loss(batch, own)
    parts = zip(batch.split(rows), own.split(rows), strict=True)
    return torch.stack(
        [checkpoint(loss, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    ).sum()
