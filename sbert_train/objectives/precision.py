"""Losses are computed in float32, whatever the precision of the run."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor

from sbert_train.objectives.embeddings import RoleEmbeddings

Options = ParamSpec("Options")


def in_float32(
    loss: Callable[Concatenate[RoleEmbeddings, Options], Tensor],
) -> Callable[Concatenate[RoleEmbeddings, Options], Tensor]:
    """The same loss on float32 vectors, with autocast off.

    Under autocast a product of float32 tensors falls to bfloat16. Its eight bits tell cosines of 0.996 and 1 apart
    and nothing between them, which is too coarse for a softmax, a margin or an order of scores.
    """

    @wraps(loss)
    def compute(batch: RoleEmbeddings, /, *args: Options.args, **options: Options.kwargs) -> Tensor:
        vectors = {role: vector.float() for role, vector in batch.vectors.items()}
        reference = {role: vector.float() for role, vector in batch.reference.items()}
        device = next(iter(vectors.values())).device
        with torch.autocast(device.type, enabled=False):
            return loss(replace(batch, vectors=vectors, reference=reference), *args, **options)

    return compute
