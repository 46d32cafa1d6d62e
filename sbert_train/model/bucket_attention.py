"""Attention over a packed row as torch's own over small padded batches.

T tokens of all texts, H heads, C channels of a head, n texts of a bucket, W width of a bucket.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from sbert_train.model.packed_layout import Bucket, PackedLayout


def in_buckets(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: PackedLayout,
    *,
    scaling: float,
    dropout: float = 0.0,
    sliding_window: int | None = None,
) -> Tensor:
    """softmax(q k^T * scaling) v within each text, with dropout on the softmax, bucket by bucket.

    Args:
        query, key, value: (T, H, C).

    Returns:
        (T, H, C).
    """
    # Splitting has one backward for all pieces; slicing would fill a full-size zero tensor for each of them.
    sizes = [bucket.tokens for bucket in layout.buckets]
    pieces = zip(*(tensor.split(sizes) for tensor in (query, key, value)), strict=True)
    outputs = []
    for bucket, tensors in zip(layout.buckets, pieces, strict=True):
        q, k, v = (_to_padded(tensor, bucket) for tensor in tensors)
        mask = bucket.visible(sliding_window, q.device)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling)
        out = out.transpose(1, 2).flatten(0, 1)  # (n * W, H, C)
        outputs.append(out if bucket.scatter is None else out.index_select(0, bucket.scatter))
    return torch.cat(outputs)


def _to_padded(tokens: Tensor, bucket: Bucket) -> Tensor:
    """(tokens, H, C) -> (n, H, W, C)."""
    if bucket.gather is not None:
        tokens = tokens.index_select(0, bucket.gather)
    return tokens.reshape(bucket.texts, bucket.width, *tokens.shape[1:]).transpose(1, 2)
