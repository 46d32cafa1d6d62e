"""Attention over a packed row: the one place of the packed forward where tokens see other tokens.

T tokens of all texts, H heads, C channels of a head, n texts of a bucket, W width of a bucket.

Three ways, with the same result but for what dropout draws:
  buckets   `bucket_attention`: on a CPU without dropout, and wherever else nothing better is to be had
  by hand   on a CPU with dropout: `cpu_attention`
  flash     on a GPU in half precision: `flash_attention`, one kernel for all texts
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from sbert_train.model.bucket_attention import in_buckets
from sbert_train.model.cpu_attention import attend_with_dropout
from sbert_train.model.dropout import STEPS, steps_of
from sbert_train.model.flash_attention import (
    can_window,
    fits,
    fits_heads,
    flash_attention,
    kernel_name,
    why_not,
)
from sbert_train.model.packed_layout import PackedLayout

PACKED = "sbert_train_packed"


class NotPackable(Exception):
    """The architecture cannot run packed; the message completes the sentence "... because"."""


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    packed_layout: PackedLayout | None = None,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Bidirectional attention within each text of a packed row (the signature of transformers' interface).

    Args:
        query, key, value: (1, H, T, C).
        attention_mask: must be None; texts are kept apart by the layout.
        scaling: factor of the products; C ** -0.5 when None.
        dropout: probability with which an attention weight is dropped.
        packed_layout: where the texts lie, passed down by the backbone from its own keyword arguments.
        sliding_window: a token sees keys closer than this many places; None for all of its text.

    Returns:
        (1, T, H, C), and None for the attention weights, which are not kept.

    Raises:
        NotPackable: the architecture did not pass the layout on, masks by itself, or attends causally.
    """
    if packed_layout is None:
        raise NotPackable("its layers do not pass keyword arguments on to attention")
    if attention_mask is not None:
        raise NotPackable("it builds an attention mask of its own")
    if is_causal or getattr(module, "is_causal", False):
        raise NotPackable("its attention is causal")
    if query.shape[1] != key.shape[1]:
        raise NotPackable("its queries and keys have different numbers of heads")
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # (T, H, C)
    options: dict[str, Any] = {
        "scaling": q.shape[-1] ** -0.5 if scaling is None else scaling,
        "dropout": dropout,
        "sliding_window": sliding_window,
    }
    if query.device.type == "cpu":
        # The kernels' backward is slow in bfloat16 on a CPU, so attention stays in float32 under autocast.
        with torch.autocast("cpu", enabled=False):
            attend = attend_with_dropout if 0 < steps_of(dropout) < STEPS else in_buckets
            attended = attend(q.float(), k.float(), v.float(), packed_layout, **options)
    elif _flash_works(q) and (sliding_window is None or can_window()):
        attended = flash_attention(q, k, v, packed_layout, **options)
    else:
        attended = in_buckets(q, k, v, packed_layout, **options)
    return attended[None].to(query.dtype), None


def attention_dropout(backbone: PreTrainedModel) -> float:
    """The probability with which a backbone drops an attention weight in training, by the names that configurations
    have for it; 0 where it has none."""
    names = ("attention_probs_dropout_prob", "attention_dropout")
    return next(
        (float(getattr(backbone.config, name)) for name in names if hasattr(backbone.config, name)), 0.0
    )


def head_channels(backbone: PreTrainedModel) -> int:
    """C, by the names that configurations have for it."""
    config = backbone.config
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def describe_attention(device: torch.device, dtype: torch.dtype, dropout: float, channels: int) -> str:
    """What a packed row meets on this device in training, in words."""
    if device.type != "cpu" and not fits_heads(channels):
        return f"scaled_dot_product_attention, as flash attention takes no heads of {channels} channels"
    if device.type != "cpu" and dtype not in (torch.float16, torch.bfloat16):
        return "scaled_dot_product_attention, as flash attention needs bf16 or fp16"
    if device.type != "cpu":
        problem = why_not(device, dtype)
        name = kernel_name(dropout)
        return (
            name if problem is None else f"scaled_dot_product_attention, as {name} cannot be used: {problem}"
        )
    return "our own, with fast dropout" if 0 < steps_of(dropout) < STEPS else "scaled_dot_product_attention"


def _flash_works(query: Tensor) -> bool:
    return fits(query) and why_not(query.device, query.dtype) is None


def _no_mask(*_: Any, **__: Any) -> None:
    """The mask of a packed row: none, for the layout keeps texts apart."""


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
