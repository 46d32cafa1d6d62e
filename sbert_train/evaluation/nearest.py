"""The k nearest texts of a corpus for each query, exactly and in bounded memory.

Shapes: Q queries, C corpus texts, D dimensions, K = min(k, C) ranks.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

QUERIES_PER_BLOCK = 256
CORPUS_PER_BLOCK = 8192


def nearest(
    queries: npt.NDArray[Any],
    corpus: npt.NDArray[Any],
    k: int,
    *,
    queries_per_block: int = QUERIES_PER_BLOCK,
    corpus_per_block: int = CORPUS_PER_BLOCK,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Corpus indices (Q, K) and cosines (Q, K) of the nearest texts, nearest first.

    Of equal cosines the lower corpus index comes first, so the ranking does not depend on the blocks.
    Cosines are computed in float64 and rounded to float32: how a matrix product sums depends on where in
    the matrix a column lies, and texts with equal embeddings should tie all the same. A zero vector has
    cosine 0 to everything.

    Beyond its arguments and results this holds one block of scores and one block of the corpus, never
    a (Q, C) matrix.
    """
    unit_queries = _unit(queries)
    best = np.empty((len(queries), 0), dtype=np.float32)
    where = np.empty((len(queries), 0), dtype=np.int64)
    for start in range(0, len(corpus), corpus_per_block):
        unit_corpus = _unit(corpus[start : start + corpus_per_block])
        found = [
            _top((unit_queries[row : row + queries_per_block] @ unit_corpus.T).astype(np.float32), k)
            for row in range(0, len(queries), queries_per_block)
        ]
        # What earlier blocks found has lower indices and stands left, so a stable sort keeps the tie rule.
        best = np.concatenate([best, np.concatenate([scores for scores, _ in found])], axis=1)
        where = np.concatenate([where, np.concatenate([columns for _, columns in found]) + start], axis=1)
        order = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best, where = np.take_along_axis(best, order, axis=1), np.take_along_axis(where, order, axis=1)
    return where, best


def _unit(embeddings: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    wide = embeddings.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: npt.NDArray[np.float64] = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return unit


def _top(scores: npt.NDArray[np.float32], k: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The k largest scores of each row and their columns, lower columns first among equals."""
    k = min(k, scores.shape[1])
    thresholds = np.partition(scores, -k, axis=1)[:, -k]
    columns = np.empty((len(scores), k), dtype=np.int64)
    for row, threshold in enumerate(thresholds):
        # Every candidate that ties at the threshold: a partition alone would keep arbitrary ones of them.
        candidates = np.flatnonzero(scores[row] >= threshold)
        columns[row] = candidates[np.argsort(-scores[row, candidates], kind="stable")[:k]]
    return np.take_along_axis(scores, columns, axis=1), columns
