"""Attention over a packed row: the one place of the packed forward where tokens see other tokens.

T tokens of all texts, H heads, C channels of a head, n texts of a bucket, W width of a bucket.

Texts lie end to end, shortest first. Neighbours of nearly the same length form a bucket, which is a small padded
batch: (n, W) with W its longest text. So no text attends to another, and no T x T mask is ever built.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface

PACKED = "sbert_train_packed"

WIDTH_STEP = (
    8  # texts whose lengths round up to the same multiple share a bucket: at most 7 padded places each
)


@dataclass(frozen=True)
class Bucket:
    """Neighbouring texts of nearly equal length.

    Attributes:
        texts: n.
        width: W, the longest of them.
        tokens: how many of the packed tokens are theirs.
        gather: (n * W,) int64 places among the bucket's tokens, padding pointing at a real token; None when all
            texts are W long, so that the bucket is a plain view.
        scatter: (tokens,) int64 places of the real tokens within (n * W,); None with gather.
        mask: (n, 1, 1, W) bool, True where a key is real; None with gather.
    """

    texts: int
    width: int
    tokens: int
    gather: Tensor | None = None
    scatter: Tensor | None = None
    mask: Tensor | None = None


def group_by_width(lengths: Sequence[int], step: int = WIDTH_STEP) -> list[tuple[int, int]]:
    """Ranges [start, stop) of neighbours whose lengths round up to the same multiple of `step`.

    >>> group_by_width([3, 7, 8, 9, 30])
    [(0, 3), (3, 4), (4, 5)]
    """
    groups, start = [], 0
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or -(-lengths[stop] // step) != -(-lengths[start] // step):
            groups.append((start, stop))
            start = stop
    return groups


def make_buckets(lengths: Sequence[int], device: torch.device | str) -> list[Bucket]:
    """The buckets of a packed row.

    Args:
        lengths: N token counts, ascending.
        device: where the index tensors are to be.
    """
    return [_bucket(torch.tensor(lengths[a:b]), device) for a, b in group_by_width(lengths)]


def _bucket(lengths: Tensor, device: torch.device | str) -> Bucket:
    texts, width, tokens = len(lengths), int(lengths[-1]), int(lengths.sum())
    if int(lengths[0]) == width:
        return Bucket(texts, width, tokens)
    columns = torch.arange(width)
    real = columns < lengths[:, None]  # (n, W)
    starts = (lengths.cumsum(0) - lengths)[:, None]
    gather = starts + torch.minimum(columns, lengths[:, None] - 1)
    return Bucket(
        texts,
        width,
        tokens,
        gather=gather.flatten().to(device),
        scatter=real.flatten().nonzero().flatten().to(device),
        mask=real[:, None, None, :].to(device),
    )


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    packed_buckets: Sequence[Bucket] | None = None,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Bidirectional attention within each text of a packed row (the signature of transformers' interface).

    Args:
        query, key, value: (1, H, T, C).
        attention_mask: must be None; texts are kept apart by the buckets.
        scaling: factor of the products; C ** -0.5 when None.
        dropout: probability with which an attention weight is dropped.
        packed_buckets: the buckets of the row, passed down by the backbone from its own keyword arguments.
        sliding_window: a token sees keys closer than this many places; None for all of its text.

    Returns:
        (1, T, H, C), and None for the attention weights, which are not kept.

    Raises:
        NotPackable: the architecture did not pass the buckets on, masks by itself, or attends causally.
    """
    if packed_buckets is None:
        raise NotPackable("its layers do not pass keyword arguments on to attention")
    if attention_mask is not None:
        raise NotPackable("it builds an attention mask of its own")
    if is_causal or getattr(module, "is_causal", False):
        raise NotPackable("its attention is causal")
    if query.shape[1] != key.shape[1]:
        raise NotPackable("its queries and keys have different numbers of heads")

    # Splitting has one backward for all pieces; slicing would fill a full-size zero tensor for each of them.
    sizes = [bucket.tokens for bucket in packed_buckets]
    pieces = zip(*(tensor[0].transpose(0, 1).split(sizes) for tensor in (query, key, value)), strict=True)
    outputs = []
    for bucket, (q, k, v) in zip(packed_buckets, pieces, strict=True):
        mask = _mask(bucket, sliding_window, query.device)
        q, k, v = _to_padded(q, bucket), _to_padded(k, bucket), _to_padded(v, bucket)
        out = _attend(q, k, v, mask, scaling, dropout)  # (n, H, W, C)
        out = out.transpose(1, 2).flatten(0, 1)
        outputs.append(out if bucket.scatter is None else out.index_select(0, bucket.scatter))
    return torch.cat(outputs)[None].to(query.dtype), None


class NotPackable(Exception):
    """The architecture cannot run packed; the message completes the sentence "... because"."""


def _to_padded(tokens: Tensor, bucket: Bucket) -> Tensor:
    """(tokens, H, C) -> (n, H, W, C)."""
    if bucket.gather is not None:
        tokens = tokens.index_select(0, bucket.gather)
    return tokens.reshape(bucket.texts, bucket.width, *tokens.shape[1:]).transpose(1, 2)


def _mask(bucket: Bucket, sliding_window: int | None, device: torch.device) -> Tensor | None:
    """(n, 1, 1, W) or (n or 1, 1, W, W) bool, True where a query may see a key; None for everywhere."""
    if sliding_window is None or bucket.width <= sliding_window:
        return bucket.mask
    places = torch.arange(bucket.width, device=device)
    near = ((places[:, None] - places[None, :]).abs() < sliding_window)[None, None]
    return near if bucket.mask is None else near & bucket.mask


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scaling: float | None, dropout: float
) -> Tensor:
    """softmax(q k^T * scaling) v with dropout on the softmax; all (n, H, W, C)."""
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling)
    # On CPU the kernels' bf16 backward is slow, so attention stays in float32 under autocast.
    with torch.autocast("cpu", enabled=False):
        q, k, v = q.float(), k.float(), v.float()
        if dropout == 0.0:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
        # With dropout the fused CPU kernel is not used at all; these few lines beat its substitute.
        scores = (q * (q.shape[-1] ** -0.5 if scaling is None else scaling)) @ k.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return F.dropout(scores.softmax(dim=-1), dropout) @ v


def _no_mask(*_: Any, **__: Any) -> None:
    """The mask of a packed row: none, for the buckets keep texts apart."""


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
