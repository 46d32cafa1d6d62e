"""Dropout whose masks cost next to nothing on a CPU.

torch's own takes several ns for each element of a CPU tensor (measured on two cores), a tenth of a training step of a
small encoder. Here an element takes 16 bits of a generator that is ten times as fast, and that torch's own
generator seeds: what repeats or restores torch's state repeats the masks.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEPS = 2**16
"""A probability is rounded to a multiple of 1 / STEPS; what is kept is scaled by the rounded one, so that the mean of
what comes out is exactly what goes in."""


class FastDropout(nn.Dropout):
    """nn.Dropout (Srivastava et al. 2014) with the masks of `dropout`."""

    def forward(self, vectors: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        return dropout(vectors, self.p, self.training)


def use_fast_dropout(module: nn.Module) -> None:
    """Replace each nn.Dropout within a module, whatever its probability, by a FastDropout."""
    for parent in module.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, FastDropout(child.p).train(child.training))


def dropout(vectors: Tensor, p: float, training: bool = True) -> Tensor:
    """Each element is set to 0 with probability p, and else divided by 1 - p.

    Args:
        vectors: of any shape and floating type.
        p: to the nearest multiple of 1 / STEPS on a CPU; 0 leaves the vectors as they are.
    """
    if not training or p == 0.0:
        return vectors
    if vectors.device.type != "cpu" or not 0 < steps_of(p) < STEPS:
        return F.dropout(vectors, p)
    dropped: Tensor = _Dropout.apply(vectors, p)  # type: ignore[no-untyped-call]
    return dropped


def steps_of(p: float) -> int:
    """A probability in units of 1 / STEPS."""
    return round(p * STEPS)


def keep_scale(p: float) -> float:
    """What a kept element is multiplied by."""
    return STEPS / (STEPS - steps_of(p))


def draw_kept(shape: torch.Size, p: float, dtype: torch.dtype = torch.bool) -> Tensor:
    """A tensor on the CPU of ones, and zeros with probability p; it moves on the state of torch's generator by one
    number."""
    count = shape.numel()
    seed = int(torch.empty((), dtype=torch.int64).random_())
    words = np.random.SFC64(seed).random_raw(-(-count // 4))  # 64 bits each
    bits = torch.from_numpy(words.view(np.int16))[:count].view(shape)
    # Written in the wanted type at once: a bool that is converted takes five times as long.
    return torch.ge(bits, steps_of(p) - STEPS // 2, out=torch.empty(shape, dtype=dtype))


class _Dropout(torch.autograd.Function):
    """The mask is kept in the type of the vectors: a product of a bool with a float is three times as slow."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, p: float) -> Tensor:
        kept = draw_kept(vectors.shape, p, vectors.dtype)
        ctx.save_for_backward(kept)
        ctx.scale = keep_scale(p)
        return (vectors * kept).mul_(ctx.scale)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (gradient * kept).mul_(ctx.scale), None
