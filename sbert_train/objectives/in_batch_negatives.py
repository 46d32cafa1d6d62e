"""In-batch negatives: each anchor has to pick its own positive among the texts of the whole batch.

B rows of this process, M rows of all processes (M = B with one), K negatives of a row, C = M * (1 + K)
candidates, D dimensions.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.gathering import gather_rows, rank


def in_batch_negatives(
    batch: RoleEmbeddings,
    *,
    scale: float = 20.0,
    similarity: Literal["cosine", "dot"] = "cosine",
    symmetric: bool = False,
    gather: bool = True,
    mask_identical: bool = True,
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
            picks its anchor among all anchors (hard negatives take no part in that half).
        gather: candidates are those of all processes, not only of this one.
        mask_identical: a candidate is no negative of an anchor when its text is that of the anchor or of its
            positive, or when it is the positive of an identical anchor.

    Returns:
        A scalar, in nats, at least 0.
    """
    rows_of = gather_rows if gather else (lambda rows: rows)
    anchor, positive = batch.vectors["anchor"], batch.vectors["positive"]
    all_positives = rows_of(positive)
    own = torch.arange(len(anchor), device=anchor.device) + (rank() * len(anchor) if gather else 0)

    keys = batch.text_keys
    anchor_keys, positive_keys = keys["anchor"], keys["positive"]
    all_anchor_keys, all_positive_keys = rows_of(anchor_keys), rows_of(positive_keys)
    same_anchor = anchor_keys[:, None] == all_anchor_keys
    same_positive = positive_keys[:, None] == all_positive_keys

    candidates, candidate_keys = all_positives, all_positive_keys
    also_positive = same_anchor
    if "negative" in batch.vectors:
        negatives = rows_of(batch.vectors["negative"]).flatten(0, 1)
        candidates = torch.cat([candidates, negatives])
        candidate_keys = torch.cat([candidate_keys, rows_of(keys["negative"]).flatten()])
        also_positive = F.pad(same_anchor, (0, len(negatives)))
    is_positive = (
        also_positive | (candidate_keys == positive_keys[:, None]) | (candidate_keys == anchor_keys[:, None])
    )
    forward = _pick(anchor, candidates, own, is_positive if mask_identical else None, scale, similarity)
    if not symmetric:
        return forward
    is_anchor = same_anchor | same_positive | (all_anchor_keys == positive_keys[:, None])
    backward = _pick(positive, rows_of(anchor), own, is_anchor if mask_identical else None, scale, similarity)
    return (forward + backward) / 2


def _pick(
    queries: Tensor, candidates: Tensor, own: Tensor, equals: Tensor | None, scale: float, similarity: str
) -> Tensor:
    """The mean cross-entropy of candidate own[i] for query i; where equals[i, c], c is left out (but for own[i]).

    Args:
        queries: (B, D). candidates: (C, D). own: (B,) int64. equals: (B, C) bool.
    """
    if similarity == "cosine":
        queries, candidates = F.normalize(queries, dim=-1), F.normalize(candidates, dim=-1)
    # Under autocast a product of float32 tensors would fall to bfloat16, which is too coarse for a softmax.
    with torch.autocast(queries.device.type, enabled=False):
        logits = queries.float() @ candidates.float().T * scale
        if equals is not None:
            others = equals.scatter(1, own[:, None], False)
            logits = logits.masked_fill(others, -torch.inf)
        return F.cross_entropy(logits, own)
