"""In-batch negatives: each anchor has to pick its own positive among the texts of the whole batch.

B rows of this process, M rows of all processes (M = B with one), K negatives of a row, C = M * (1 + K)
candidates, D dimensions.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sbert_train.objectives.candidates import (
    Hardness,
    MarginStrategy,
    candidates_of,
    equal_to_anchor,
    equal_to_positive,
    nearer_than_own,
    of_all_processes,
    weighted_by_hardness,
)
from sbert_train.objectives.chunks import sum_over_rows
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.gathering import rank
from sbert_train.objectives.precision import in_float32

MAX_SCALE = 100.0
"""What a learnt scale may not exceed."""


@in_float32
def in_batch_negatives(
    batch: RoleEmbeddings,
    *,
    scale: float | Tensor = 20.0,
    similarity: Literal["cosine", "dot"] = "cosine",
    symmetric: bool = False,
    gather: bool = True,
    mask_identical: bool = True,
    hardness: Hardness = "none",
    hardness_strength: float = 5.0,
    guide_margin: float | None = None,
    margin_strategy: MarginStrategy = "absolute",
) -> Tensor:
    """The cross-entropy of each anchor's own positive among all candidates of the batch.

        L = - 1/B sum_i log( exp(s * sim(a_i, p_i)) / sum_c exp(s * sim(a_i, c)) )

    over all positives and hard negatives c. Henderson et al. 2017 ("Efficient Natural Language Response
    Suggestion", section 4.4) with dot product; van den Oord et al. 2018 (InfoNCE, equation 4); Chen et al. 2020
    (NT-Xent, equation 1) with cosine and temperature 1/s. Also called multiple negatives ranking loss.

    Args:
        batch: roles anchor, positive, and any number of negative.
        scale: s > 0, the factor of the similarities; 1/temperature.
        symmetric: the mean of L and of the same loss with anchors and positives exchanged, where each positive
            picks its anchor among all anchors (hard negatives and hardness take no part in that half).
        gather: candidates are those of all processes, not only of this one.
        mask_identical: a candidate is no negative of an anchor when its text is that of the anchor or of its
            positive, or when it is the positive of an identical anchor.
        hardness: which negatives have alpha * sim(a_i, c), of which no gradient is taken, added to the exponent, so
            that the more similar weigh more: in_batch, those of other rows (Lan et al. 2025, "LLaVE", equation 5);
            hard, each row's own hard negatives (Schechter Vera et al. 2025, "EmbeddingGemma"); all, both.
        hardness_strength: alpha >= 0; 9 in LLaVE, 5 in EmbeddingGemma.
        guide_margin: a candidate is no negative of an anchor when a guide finds their cosine higher than that of the
            anchor and its positive less this margin (`candidates.nearer_than_own`). The guide is `batch.reference`,
            or the embeddings themselves where there is none. With `symmetric` the same holds for positives and the
            anchors among which they pick. None: no such rule.
        margin_strategy: absolute, or relative: as a part of the cosine of the anchor and its positive.

    Returns:
        A scalar, in nats, at least 0.
    """
    roles = set(batch.vectors) - (set() if symmetric else {"anchor"})
    everyone = of_all_processes(batch, roles) if gather else batch
    all_guides = everyone.reference or everyone.vectors
    candidates, rows = candidates_of(everyone.vectors), len(everyone.vectors["positive"])
    count = len(batch.vectors["anchor"])
    own = torch.arange(count, device=candidates.device) + (rank() * count if gather else 0)

    def picking_positives(part: RoleEmbeddings, own: Tensor) -> Tensor:
        """The sum over some rows."""
        left_out = own.new_zeros(len(own), len(candidates), dtype=torch.bool)
        if mask_identical:
            left_out |= equal_to_positive(part, everyone)
        if guide_margin is not None:
            guide, found = (part.reference or part.vectors)["anchor"], candidates_of(all_guides)
            left_out |= nearer_than_own(guide, found, own, guide_margin, margin_strategy)
        weights = None
        if hardness != "none":
            weights = hardness_strength * weighted_by_hardness(own, rows, len(candidates), hardness)
        return _pick(part.vectors["anchor"], candidates, own, left_out, weights, scale, similarity)

    forward = sum_over_rows(picking_positives, batch, own, len(candidates)) / count
    if not symmetric:
        return forward

    def picking_anchors(part: RoleEmbeddings, own: Tensor) -> Tensor:
        """The sum over some rows."""
        left_out = own.new_zeros(len(own), rows, dtype=torch.bool)
        if mask_identical:
            left_out |= equal_to_anchor(part, everyone)
        if guide_margin is not None:
            guide, found = (part.reference or part.vectors)["positive"], all_guides["anchor"]
            left_out |= nearer_than_own(guide, found, own, guide_margin, margin_strategy)
        anchors = everyone.vectors["anchor"]
        return _pick(part.vectors["positive"], anchors, own, left_out, None, scale, similarity)

    backward = sum_over_rows(picking_anchors, batch, own, rows) / count
    return (forward + backward) / 2


class InBatchNegatives(nn.Module):
    """`in_batch_negatives` with a scale that may be learnt along with the encoder.

    Attributes:
        log_scale: (), the logarithm of the scale, where it is learnt; without weight decay, which would draw the scale
            to 1. Radford et al. 2021, "CLIP", section 2.5, who keep the scale to at most 100, too.
        options: those of `in_batch_negatives`, but for the scale.
    """

    log_scale: nn.Parameter | None

    def __init__(self, *, scale: float = 20.0, learnable_scale: bool = False, **options: Any) -> None:
        """Make the loss.

        Args:
            scale: s > 0, where it starts if it is learnt; more than 100 is then taken for 100.
            options: keyword arguments of `in_batch_negatives`.
        """
        super().__init__()
        self.scale, self.options = scale, options
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale))) if learnable_scale else None

    def forward(self, batch: RoleEmbeddings) -> Tensor:
        """A scalar, in nats, at least 0."""
        return in_batch_negatives(batch, scale=self.current_scale(), **self.options)

    def current_scale(self) -> float | Tensor:
        """The scale that the next batch sees."""
        if self.log_scale is None:
            return self.scale
        # The parameter itself is cut. Cut behind it, a scale above the limit would have no gradient to come back by.
        with torch.no_grad():
            self.log_scale.clamp_(max=math.log(MAX_SCALE))
        return self.log_scale.float().exp()


def _pick(
    queries: Tensor,
    candidates: Tensor,
    own: Tensor,
    left_out: Tensor,
    weights: Tensor | None,
    scale: float | Tensor,
    similarity: str,
) -> Tensor:
    """The sum over queries of the cross-entropy of candidate own[i] for query i.

    Args:
        queries: (B, D). candidates: (C, D). own: (B,) int64.
        left_out: (B, C) bool, where a candidate is none of a query; own[i] is one all the same.
        weights: (B, C), what of a similarity is added to its logit without gradient, or None.
    """
    if similarity == "cosine":
        queries, candidates = F.normalize(queries, dim=-1), F.normalize(candidates, dim=-1)
    similarities = queries @ candidates.T
    logits = similarities * scale
    if weights is not None:
        logits = logits + weights * similarities.detach()
    others = left_out.scatter(1, own[:, None], False)
    return F.cross_entropy(logits.masked_fill(others, -torch.inf), own, reduction="sum")
