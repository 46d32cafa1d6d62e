"""Where the texts of a packed row lie, and the small padded batches that attention makes of them on the way.

T tokens of all texts, H heads, n texts of a bucket, W width of a bucket.

Texts lie end to end, shortest first. Neighbours of nearly the same length form a bucket, which is a small padded
batch: (n, W) with W its longest text. So no text attends to another, and no T x T mask is ever built.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# Texts whose lengths round up to the same multiple share a bucket: at most 7 padded places each.
WIDTH_STEP = 8


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

    def visible(self, sliding_window: int | None, device: torch.device) -> Tensor | None:
        """(n, 1, 1, W) or (n or 1, 1, W, W) bool, True where a query may see a key; None for everywhere. No query sees
        nothing.

        Args:
            sliding_window: a token sees keys closer than this many places; None for all of its text.
        """
        if sliding_window is None or self.width <= sliding_window:
            return self.mask
        places = torch.arange(self.width, device=device)
        near = ((places[:, None] - places[None, :]).abs() < sliding_window)[None, None]
        if self.mask is None:
            return near
        # Padding, as a query, may be beyond the window of all real keys; seeing none, it would be NaN.
        return (near | ~self.mask.transpose(-1, -2)) & self.mask


@dataclass(frozen=True)
class HeadRows:
    """The places of all buckets together, head by head: of each bucket a row for each of (n, H, W).

    Attributes:
        gather: (sum of n * H * W,) int64 rows among the (T * H) rows of the packed tokens, those of padding pointing
            at a real token.
        scatter: (T * H,) int64, where each row of the packed tokens is among the gathered ones.
        padding: (P,) int64, which of the gathered rows are padding.
    """

    gather: Tensor
    scatter: Tensor
    padding: Tensor


class PackedLayout:
    """The texts of a packed row; what attention needs to know of them is made once and serves all layers."""

    def __init__(self, lengths: Sequence[int], device: torch.device | str) -> None:
        """Describe a row.

        Args:
            lengths: N token counts, ascending.
            device: where the tokens are.
        """
        self.lengths = tuple(lengths)
        self.device = torch.device(device)
        self._head_rows: dict[int, HeadRows] = {}

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """All texts, bucket by bucket."""
        groups = group_by_width(self.lengths)
        return tuple(_bucket(torch.tensor(self.lengths[a:b]), self.device) for a, b in groups)

    @cached_property
    def ends(self) -> Tensor:
        """(N + 1,) int32: 0, and where each text ends, as kernels for texts of different lengths want it."""
        ends = torch.tensor((0, *self.lengths)).cumsum(0)
        return ends.to(self.device, torch.int32)

    def head_rows(self, heads: int) -> HeadRows:
        """The rows of H heads."""
        if heads not in self._head_rows:
            self._head_rows[heads] = _head_rows(self.buckets, heads, self.device)
        return self._head_rows[heads]


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


def _bucket(lengths: Tensor, device: torch.device) -> Bucket:
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


def _head_rows(buckets: Sequence[Bucket], heads: int, device: torch.device) -> HeadRows:
    gather, scatter, padding = [], [], []
    first_token = first_row = 0
    for bucket in buckets:
        places = torch.arange(bucket.texts * bucket.width, device=device)
        tokens = first_token + (places if bucket.gather is None else bucket.gather)
        rows = tokens.view(bucket.texts, 1, bucket.width) * heads
        gather.append((rows + torch.arange(heads, device=device)[:, None]).flatten())
        # Place of (n, W, H) among the rows, which lie in the order (n, H, W).
        count = bucket.texts * heads * bucket.width
        place = torch.arange(first_row, first_row + count, device=device)
        place = place.view(bucket.texts, heads, bucket.width).transpose(1, 2).flatten(0, 1)
        if bucket.scatter is None or bucket.mask is None:
            scatter.append(place.flatten())
        else:
            scatter.append(place[bucket.scatter].flatten())
            padding.append(place[~bucket.mask.flatten()].flatten())
        first_token += bucket.tokens
        first_row += count
    none = torch.empty(0, dtype=torch.int64, device=device)
    return HeadRows(torch.cat(gather), torch.cat(scatter), torch.cat([none, *padding]))
