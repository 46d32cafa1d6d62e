"""Attention over a packed row in one kernel, on a GPU: the flash-attn package where it is installed, else torch's own.

T tokens of all texts, H heads, C channels of a head.

Dao 2023, "FlashAttention-2". torch offers it for texts of different lengths as varlen_attn, which has no dropout; with
dropout the operator behind it is called, as torch's nested tensors do. None of that is promised to go on any GPU, so it
is tried once, and where it fails or errs the buckets of `packed_layout` do the work.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from inspect import signature

import torch
from torch import Tensor

from sbert_train.model.bucket_attention import in_buckets
from sbert_train.model.packed_layout import PackedLayout

HALF = (torch.float16, torch.bfloat16)
_TRIED_LENGTHS = (1, 3, 4, 9, 17, 40)
_TRIED_WINDOW = 8
_TOLERANCE = 0.03  # relative, of half precision; a wrong mask or scale is far above


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: PackedLayout,
    *,
    scaling: float,
    dropout: float = 0.0,
    sliding_window: int | None = None,
) -> Tensor:
    """softmax(q k^T * scaling) v within each text, with dropout on the softmax.

    Args:
        query, key, value: (T, H, C) of a half-precision type on a GPU.
        sliding_window: a token sees keys closer than this many places; None for all of its text.

    Returns:
        (T, H, C).
    """
    ends, longest = layout.ends, layout.lengths[-1]
    places = (ends, ends, longest, longest)
    window = (-1, -1) if sliding_window is None else (sliding_window - 1, sliding_window - 1)
    if has_package():
        from flash_attn import flash_attn_varlen_func

        out: Tensor = flash_attn_varlen_func(
            query, key, value, *places, dropout_p=dropout, softmax_scale=scaling, window_size=window
        )
        return out
    if dropout > 0.0:
        left, right = (None, None) if sliding_window is None else window
        out, *_ = torch.ops.aten._flash_attention_forward(
            query, key, value, *places, dropout, False, False, scale=scaling,
            window_size_left=left, window_size_right=right,
        )  # fmt: skip
        return out
    from torch.nn.attention.varlen import varlen_attn

    # torch 2.10 has neither a scale nor a window; there the queries are scaled before.
    options = {} if sliding_window is None else {"window_size": window}
    attended: Tensor = varlen_attn(query * (scaling * query.shape[-1] ** 0.5), key, value, *places, **options)  # type: ignore[arg-type,assignment]
    return attended


@lru_cache(maxsize=1)
def has_package() -> bool:
    """Whether the flash-attn package can be imported: one that was built for another torch cannot."""
    try:
        import_module("flash_attn")
    except (ImportError, OSError, RuntimeError):
        return False
    return True


def kernel_name(dropout: float) -> str:
    """What `flash_attention` calls, in words."""
    return "flash-attn" if has_package() else "torch's flash attention" if dropout > 0 else "varlen_attn"


@lru_cache(maxsize=1)
def can_window() -> bool:
    """Whether a sliding window can be had."""
    if has_package():
        return True
    from torch.nn.attention.varlen import varlen_attn

    return "window_size" in signature(varlen_attn).parameters


def fits(query: Tensor) -> bool:
    """Whether the kernel takes heads of this size and type."""
    return query.dtype in HALF and fits_heads(query.shape[-1])


def fits_heads(channels: int) -> bool:
    """Whether the kernel takes heads of this size."""
    return channels % 8 == 0 and channels <= 256


@lru_cache(maxsize=8)
def why_not(device: torch.device, dtype: torch.dtype) -> str | None:
    """None if the kernel works on this device, else what is wrong with it; tried once a process."""
    layout = PackedLayout(_TRIED_LENGTHS, device)
    shape, scaling = (sum(_TRIED_LENGTHS), 2, 32), 32**-0.5
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator).to(device, dtype) for _ in range(4)]
    windows = (None, _TRIED_WINDOW) if can_window() else (None,)
    try:
        with torch.enable_grad(), torch.random.fork_rng():
            found, expected = (
                [
                    one
                    for window in windows
                    for one in values_and_gradients(
                        partial(attend, layout=layout, scaling=scaling, sliding_window=window), tensors
                    )
                ]
                for attend in (flash_attention, in_buckets)
            )
            ones = torch.ones(shape, device=device, dtype=dtype)
            sums = flash_attention(tensors[0], tensors[1], ones, layout, scaling=scaling, dropout=0.5).float()
    except (RuntimeError, TypeError, ImportError, ValueError, NotImplementedError) as error:
        return f"it fails ({(str(error).strip() or type(error).__name__).splitlines()[0][:120]})"
    for a, b in zip(found, expected, strict=True):
        difference = float((a - b).float().norm() / b.float().norm())
        if not difference < _TOLERANCE:
            return f"its result differs by {difference:.1e}"
    # Of weights that sum to 1, half are dropped and the rest doubled: 1 on average, and hardly ever just 1.
    if not (0.7 < float(sums.mean()) < 1.3 and float(sums.std()) > 0.05):
        return f"its dropout is none (mean {float(sums.mean()):.2f}, deviation {float(sums.std()):.2f})"
    return None


def values_and_gradients(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor], tensors: list[Tensor]
) -> list[Tensor]:
    """What attention gives for queries, keys and values, and the gradients of its sum, weighted by a fourth tensor."""
    *inputs, weights = tensors
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    out = attend(*inputs)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), inputs)]
