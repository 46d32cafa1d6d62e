"""Metrics of embeddings and rankings, as functions of arrays only.

Shapes: N pairs, D dimensions, Q queries, K ranks kept of each query's ranking (rank 1 first).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from sbert_train.errors import EvaluationError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

# Below this spread, relative to the largest value, a column holds rounding noise and no information.
CONSTANT_VALUES = 1e-12
# Embeddings come from float32 arithmetic, whose noise is a few units of 1.2e-7.
CONSTANT_EMBEDDINGS = 1e-6
PAIRS_PER_BLOCK = 8192


# --- similarity of pairs -----------------------------------------------------------------------------


def cosine(u: Floats, v: Floats) -> Floats:
    """Cosine similarity of paired rows, (N, D) and (N, D) -> (N,), in [-1, 1]; 0 where a row is all zeros."""
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    cosines: Floats = np.divide(dot(u, v), lengths, out=np.zeros(len(u)), where=lengths > 0)
    return cosines


def dot(u: Floats, v: Floats) -> Floats:
    """Dot product of paired rows, (N, D) and (N, D) -> (N,)."""
    products: Floats = np.einsum("nd,nd->n", u, v)
    return products


def euclidean(u: Floats, v: Floats) -> Floats:
    """Negated Euclidean distance of paired rows, (N, D) and (N, D) -> (N,): the larger, the more alike."""
    distances: Floats = np.linalg.norm(u - v, axis=1)
    return -distances


def manhattan(u: Floats, v: Floats) -> Floats:
    """Negated Manhattan distance of paired rows, (N, D) and (N, D) -> (N,): the larger, the more alike."""
    distances: Floats = np.abs(u - v).sum(axis=1)
    return -distances


SIMILARITIES: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


def pair_similarities(u: Array, v: Array) -> dict[str, Floats]:
    """Every similarity of SIMILARITIES for paired embeddings (N, D) and (N, D), each (N,) float64.

    Computed in float64 and rounded to float32, the precision of the embeddings, so that pairs of equal
    vectors tie in cosine too instead of being ranked by the last bit of a square root.

    Raises EvaluationError if the shapes differ, a value is not finite, or u and v each hold one vector
    only, which makes every similarity constant.
    """
    u, v = check_embeddings(u, "left embeddings"), check_embeddings(v, "right embeddings")
    if u.shape != v.shape:
        raise EvaluationError(
            f"expected as many left as right embeddings of one size, found {u.shape} and {v.shape}; "
            "embed both sides of every pair with the same model"
        )
    if len(u) > 1 and is_collapsed(u) and is_collapsed(v):
        raise EvaluationError(
            f"the model embeds all {len(u)} pairs alike, so no similarity can rank them; "
            "it has collapsed: lower the learning rate or check the pooling"
        )
    blocks = [slice(start, start + PAIRS_PER_BLOCK) for start in range(0, len(u), PAIRS_PER_BLOCK)]
    return {
        name: np.concatenate([similarity(u[b].astype(np.float64), v[b].astype(np.float64)) for b in blocks])
        .astype(np.float32)
        .astype(np.float64)
        for name, similarity in SIMILARITIES.items()
    }


def cosines_of(left: Array, right: Array, left_of: Array, right_of: Array) -> Floats:
    """The cosine of each pair of a row of left (Q, D) and a row of right (C, D), which are named by their numbers, each
    (N,); (N,), a block of pairs at a time.

    Rounded to float32, the precision of the embeddings, so that equal embeddings tie.
    """
    blocks = [slice(start, start + PAIRS_PER_BLOCK) for start in range(0, len(left_of), PAIRS_PER_BLOCK)]
    found = [
        cosine(left[left_of[b]].astype(np.float64), right[right_of[b]].astype(np.float64)) for b in blocks
    ]
    return np.concatenate(found).astype(np.float32).astype(np.float64)


def check_embeddings(embeddings: Array, what: str) -> Array:
    """The embeddings, once they are known to be (N >= 1, D) and finite; EvaluationError otherwise."""
    if embeddings.ndim != 2 or 0 in embeddings.shape:
        raise EvaluationError(
            f"{what}: expected an array of shape (texts, dimensions), found shape {embeddings.shape}; "
            "return one vector for each text"
        )
    broken = np.count_nonzero(~np.isfinite(embeddings).all(axis=1))
    if broken:
        raise EvaluationError(
            f"{what}: {broken:,} of {len(embeddings):,} hold NaN or infinity; "
            "the model has diverged: lower the learning rate or use precision fp32"
        )
    return embeddings


def is_collapsed(embeddings: Array) -> bool:
    """Whether all rows of embeddings (N, D) are one vector, up to float32 noise."""
    spread = embeddings.max(axis=0) - embeddings.min(axis=0)
    return bool(spread.max() <= CONSTANT_EMBEDDINGS * np.abs(embeddings).max())


# --- correlation of predictions with gold scores -----------------------------------------------------


def pearson(predictions: Array, gold: Array) -> float:
    """Pearson's correlation of predictions (N,) with gold scores (N,), in [-1, 1].

    Raises EvaluationError where it is undefined: fewer than two pairs, lengths that differ, a value that
    is not finite, constant predictions or constant gold scores. It never returns NaN.
    """
    x, y = _check_correlated(predictions, gold, "Pearson")
    return float(stats.pearsonr(x, y).statistic)


def spearman(predictions: Array, gold: Array) -> float:
    """Spearman's rank correlation of predictions (N,) with gold scores (N,), in [-1, 1].

    Pearson's correlation of the ranks, ties sharing the mean of their ranks (Spearman 1904). Undefined,
    and raising EvaluationError, in the same cases as `pearson`.
    """
    x, y = _check_correlated(predictions, gold, "Spearman")
    return float(stats.pearsonr(stats.rankdata(x), stats.rankdata(y)).statistic)


CORRELATIONS: Mapping[str, Callable[[Array, Array], float]] = {"pearson": pearson, "spearman": spearman}

# name of a metric -> (name of its correlation, name of its similarity)
CORRELATION_METRICS: Mapping[str, tuple[str, str]] = {
    f"{correlation}_{similarity}": (correlation, similarity)
    for similarity in SIMILARITIES
    for correlation in CORRELATIONS
}


def is_constant(values: Array) -> bool:
    """Whether finite values (N,) are all the same, up to rounding."""
    return bool(values.max() - values.min() <= CONSTANT_VALUES * np.abs(values).max())


def _check_correlated(predictions: Array, gold: Array, what: str) -> tuple[Floats, Floats]:
    x, y = np.asarray(predictions, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise EvaluationError(
            f"{what}: expected one prediction for each gold score, found shapes {x.shape} and {y.shape}; "
            "pass two flat arrays of one length"
        )
    if len(x) < 2:
        raise EvaluationError(
            f"{what}: expected at least 2 pairs, found {len(x)}; add pairs or loosen `where` and `limit`"
        )
    for values, name, remedy in (
        (x, "predictions", "the model has diverged: lower the learning rate or use precision fp32"),
        (y, "gold scores", "mend or filter these rows"),
    ):
        bad = np.count_nonzero(~np.isfinite(values))
        if bad:
            raise EvaluationError(f"{what}: {bad:,} of {len(values):,} {name} are NaN or infinite; {remedy}")
    for values, name, remedy in (
        (x, "predictions", "the model has collapsed: lower the learning rate or check the pooling"),
        (y, "gold scores", "use a set with different scores, or check `where` and the score column"),
    ):
        if is_constant(values):
            raise EvaluationError(
                f"{what} is undefined: all {len(values):,} {name} are {values[0]:.6g}; {remedy}"
            )
    return x, y


# --- rankings ----------------------------------------------------------------------------------------
# hits (Q, K) bool: whether the text at each rank is relevant to the query; K may be smaller than a
# metric's k when the corpus is. relevant (Q,) int: how many texts of the corpus are relevant, >= 1.
# Each metric gives one value per query, so that queries can be resampled; its figure is the mean.


def accuracy_at(hits: Array, relevant: Array, k: int) -> Floats:
    """1.0 where a relevant text is among the first k, else 0.0; (Q,). At k = 1 this is precision@1."""
    return np.asarray(hits[:, :k].any(axis=1), dtype=np.float64)


def recall_at(hits: Array, relevant: Array, k: int) -> Floats:
    """Share of the query's relevant texts that are among the first k; (Q,) in [0, 1]."""
    shares: Floats = hits[:, :k].sum(axis=1) / relevant
    return shares


def reciprocal_rank_at(hits: Array, relevant: Array, k: int) -> Floats:
    """1 / rank of the first relevant text among the first k, 0 where there is none; (Q,) in [0, 1].

    Voorhees 1999, "The TREC-8 Question Answering Track Report"; cut off at k.
    """
    first = hits[:, :k].argmax(axis=1)  # 0 where there is none, too
    reciprocal: Floats = hits[:, :k].any(axis=1) / (first + 1)
    return reciprocal


def ndcg_at(hits: Array, relevant: Array, k: int) -> Floats:
    """Normalised discounted cumulative gain of the first k with gains of 0 or 1; (Q,) in [0, 1].

    Sum over the relevant ranks r <= k of 1 / log2(r + 1), divided by that sum for a ranking with all
    relevant texts first (Järvelin and Kekäläinen 2002, with the discount of Burges et al. 2005).
    """
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    gained = hits[:, :k] @ discounts[: hits[:, :k].shape[1]]
    normalised: Floats = gained / np.cumsum(discounts)[np.minimum(relevant, k) - 1]
    return normalised


def average_precision_at(hits: Array, relevant: Array, k: int) -> Floats:
    """Average precision of the first k; (Q,) in [0, 1]. Its mean over queries is MAP@k.

    Sum over the relevant ranks r <= k of precision@r, divided by min(k, relevant), the most that k ranks
    can hold. Equal to the average precision of the full ranking where k reaches the last relevant text.
    """
    kept = hits[:, :k]
    precisions = np.cumsum(kept, axis=1) / np.arange(1, kept.shape[1] + 1)
    average: Floats = (precisions * kept).sum(axis=1) / np.minimum(relevant, k)
    return average


# name of a metric -> (its function, its k)
RANKING_METRICS: Mapping[str, tuple[Callable[[Array, Array, int], Floats], int]] = {
    "accuracy@1": (accuracy_at, 1),
    "recall@1": (recall_at, 1),
    "recall@5": (recall_at, 5),
    "recall@10": (recall_at, 10),
    "mrr@10": (reciprocal_rank_at, 10),
    "ndcg@10": (ndcg_at, 10),
    "map@100": (average_precision_at, 100),
}


def ranking_values(hits: Array, relevant: Array) -> dict[str, Floats]:
    """Every metric of RANKING_METRICS for hits (Q, K) and relevant (Q,): one value per query, each (Q,)."""
    return {name: metric(hits, relevant, k) for name, (metric, k) in RANKING_METRICS.items()}
