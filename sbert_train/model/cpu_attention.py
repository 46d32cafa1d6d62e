"""Attention with dropout on a CPU, forward and backward by hand.

torch's fused CPU kernel has no dropout, and falls back to a slow path as soon as there is any. What follows does the
same arithmetic with fewer copies than automatic differentiation would make, because the rows of all buckets
are brought into the order of the matrix products once, and back once.

T tokens of all texts, H heads, C channels of a head; n texts of a bucket, W its width; m = n * H.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sbert_train.model.dropout import draw_kept, keep_scale
from sbert_train.model.packed_layout import Bucket, PackedLayout


def attend_with_dropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: PackedLayout,
    *,
    scaling: float,
    dropout: float,
    sliding_window: int | None = None,
) -> Tensor:
    """softmax(q k^T * scaling) v within each text, with dropout on the softmax (Vaswani et al. 2017, section 3.2.1, and
    as BERT has it).

    Args:
        query, key, value: (T, H, C) float32 on the CPU.
        dropout: from 0, which drops nothing, to below 1; see `sbert_train.model.dropout` for its steps.
        sliding_window: see `Bucket.visible`.

    Returns:
        (T, H, C).
    """
    attended: Tensor = _Attention.apply(query, key, value, layout, scaling, dropout, sliding_window)  # type: ignore[no-untyped-call]
    return attended


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        layout: PackedLayout,
        scaling: float,
        dropout: float,
        sliding_window: int | None,
    ) -> Tensor:
        heads = query.shape[1]
        rows = layout.head_rows(heads)
        q, k, v = (tensor.flatten(0, 1).index_select(0, rows.gather) for tensor in (query, key, value))
        q.mul_(scaling)

        weights = q.new_empty(sum(b.texts * heads * b.width**2 for b in layout.buckets))
        for bucket, (q_b, k_b), scores in _pieces(layout, heads, (q, k), weights):
            torch.bmm(q_b, k_b.transpose(1, 2), out=scores)
            visible = bucket.visible(sliding_window, query.device)
            if visible is not None:
                scores.view(bucket.texts, heads, *scores.shape[1:]).masked_fill_(~visible, -torch.inf)
            torch.softmax(scores, dim=-1, out=scores)

        # A weight is never negative, so its sign has room for whether it was dropped.
        signed = torch.where(draw_kept(weights.shape, dropout), weights, -weights)
        used, out = torch.clamp(signed, min=0, out=weights), torch.empty_like(v)
        for _, (v_b, out_b), weights_b in _pieces(layout, heads, (v, out), used):
            torch.bmm(weights_b, v_b, out=out_b)

        ctx.save_for_backward(q, k, v, signed)
        ctx.layout, ctx.scaling, ctx.keep_scale = layout, scaling, keep_scale(dropout)
        return out.index_select(0, rows.scatter).mul_(ctx.keep_scale).view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, signed = ctx.saved_tensors
        layout: PackedLayout = ctx.layout
        heads = gradient.shape[1]
        rows = layout.head_rows(heads)
        d_out = gradient.flatten(0, 1).index_select(0, rows.gather).mul_(ctx.keep_scale)
        d_out.index_fill_(0, rows.padding, 0.0)

        used, d_v, d_weights = signed.clamp(min=0), torch.empty_like(v), torch.empty_like(signed)
        for (_, (d_out_b, v_b, d_v_b), used_b), d_weights_b in zip(
            _pieces(layout, heads, (d_out, v, d_v), used), _squares(layout, heads, d_weights), strict=True
        ):
            torch.bmm(used_b.transpose(1, 2), d_out_b, out=d_v_b)
            torch.bmm(d_out_b, v_b.transpose(1, 2), out=d_weights_b)

        # Of a weight that was dropped comes no gradient; the softmax in its backward is that before dropout.
        d_weights = torch.ops.aten.threshold_backward(d_weights, signed, 0)
        weights = torch.abs(signed, out=used)
        d_q, d_k = torch.empty_like(q), torch.empty_like(k)
        for (_, (q_b, k_b, d_q_b, d_k_b), weights_b), d_b in zip(
            _pieces(layout, heads, (q, k, d_q, d_k), weights), _squares(layout, heads, d_weights), strict=True
        ):
            d_scores = torch.ops.aten._softmax_backward_data(d_b, weights_b, -1, d_b.dtype)
            torch.bmm(d_scores, k_b, out=d_q_b)
            torch.bmm(d_scores.transpose(1, 2), q_b, out=d_k_b)
        d_q.mul_(ctx.scaling)
        tokens = len(gradient)
        d_query, d_key, d_value = (
            d.index_select(0, rows.scatter).view(tokens, heads, -1) for d in (d_q, d_k, d_v)
        )
        return d_query, d_key, d_value, None, None, None, None


def _pieces(
    layout: PackedLayout, heads: int, rows: tuple[Tensor, ...], squares: Tensor
) -> Iterator[tuple[Bucket, tuple[Tensor, ...], Tensor]]:
    """Bucket by bucket the views (m, W, C) of some rows, and (m, W, W) of a flat tensor."""
    first = 0
    for bucket, square in zip(layout.buckets, _squares(layout, heads, squares), strict=True):
        batch, width = square.shape[:2]
        last = first + batch * width
        yield bucket, tuple(tensor[first:last].view(batch, width, -1) for tensor in rows), square
        first = last


def _squares(layout: PackedLayout, heads: int, flat: Tensor) -> Iterator[Tensor]:
    """Bucket by bucket the view (m, W, W) of a flat tensor."""
    first = 0
    for bucket in layout.buckets:
        batch, width = bucket.texts * heads, bucket.width
        last = first + batch * width * width
        yield flat[first:last].view(batch, width, width)
        first = last
