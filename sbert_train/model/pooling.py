"""Token vectors -> one vector per text, over packed and over padded tokens alike.

N texts, L longest text, T tokens of all texts, D dimensions.

Every pooling but `max` is a weighted sum of a text's token vectors, and the weight of a token depends on its
place and on the length of its text alone. So a pooling is a function (places, lengths) -> weights, written once
and used for both forms of input.

Mean, CLS and max: Reimers & Gurevych 2019, "Sentence-BERT", section 3. Mean over the square root of the length:
Arora et al. 2017 use sums; sentence-transformers names it mean_sqrt_len_tokens. Weighted mean: Muennighoff 2022,
"SGPT", equation 2.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Weights = Callable[[Tensor, Tensor], Tensor]


def _mean(places: Tensor, lengths: Tensor) -> Tensor:
    return torch.ones_like(places) / lengths


def _mean_sqrt_len(places: Tensor, lengths: Tensor) -> Tensor:
    return torch.ones_like(places) / lengths.sqrt()


def _weighted_mean(places: Tensor, lengths: Tensor) -> Tensor:
    return (places + 1) * 2 / (lengths * (lengths + 1))


def _cls(places: Tensor, lengths: Tensor) -> Tensor:
    return (places == 0).to(places.dtype)


def _last(places: Tensor, lengths: Tensor) -> Tensor:
    return (places == lengths - 1).to(places.dtype)


TOKEN_WEIGHTS: dict[str, Weights] = {
    "mean": _mean,
    "cls": _cls,
    "mean_sqrt_len": _mean_sqrt_len,
    "weighted_mean": _weighted_mean,
    "last": _last,
}
POOLINGS = (*TOKEN_WEIGHTS, "max")


def pool_packed(tokens: Tensor, lengths: Sequence[int], pooling: str) -> Tensor:
    """Pool texts that lie end to end.

    Args:
        tokens: (T, D) vectors of any float type.
        lengths: N token counts, each at least 1, with sum T.
        pooling: a name of POOLINGS.

    Returns:
        (N, D) float32.
    """
    counts = torch.tensor(lengths, device=tokens.device)
    values = tokens.float()
    if pooling == "max":
        return torch.segment_reduce(values, "max", lengths=counts)
    starts = torch.cumsum(counts, 0) - counts
    if pooling == "cls":
        return values[starts]
    if pooling == "last":
        return values[starts + counts - 1]
    # Told the size of the output, a GPU need not wait for the counts.
    starts, of_text = (torch.repeat_interleave(x, counts, output_size=len(values)) for x in (starts, counts))
    places = torch.arange(len(values), device=tokens.device) - starts
    weights = TOKEN_WEIGHTS[pooling](places.float(), of_text.float())
    return torch.segment_reduce(values * weights[:, None], "sum", lengths=counts)


def pool_padded(tokens: Tensor, attention_mask: Tensor, pooling: str) -> Tensor:
    """Pool right-padded texts.

    Args:
        tokens: (N, L, D) vectors of any float type; those of padding are ignored.
        attention_mask: (N, L), 1 for a token and 0 for padding; every row begins with a token.
        pooling: a name of POOLINGS.

    Returns:
        (N, D) float32.
    """
    real = attention_mask.bool()
    values = tokens.float().masked_fill(~real[..., None], 0.0)
    if pooling == "max":
        return values.masked_fill(~real[..., None], -torch.inf).amax(dim=1)
    places = torch.arange(values.shape[1], device=tokens.device).expand(real.shape).float()
    lengths = real.sum(dim=1, keepdim=True).expand(real.shape).float()
    weights = TOKEN_WEIGHTS[pooling](places, lengths).masked_fill(~real, 0.0)
    return torch.einsum("nl,nld->nd", weights, values)
