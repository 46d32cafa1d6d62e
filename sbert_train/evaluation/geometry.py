"""The shape of an embedding space, in figures of a sample of it: does it use its room, or has it collapsed?

Shapes: N texts or pairs, D dimensions. Rows need not be of length 1: all but the effective rank look at directions
only. Each function raises EvaluationError where embeddings have no figures: values that are not finite, or none.
"""

import numpy as np

from sbert_train.evaluation.metrics import Array, Floats, check_embeddings, cosine

TEMPERATURE = 2.0
"""t of `uniformity`, as its paper has it."""


def directions(embeddings: Array) -> Floats:
    """The rows scaled to length 1, (N, D) -> (N, D) float64; a row of zeros stays as it is."""
    rows = check_embeddings(embeddings, "embeddings").astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


def alignment(u: Array, v: Array) -> float:
    """How near positives are, in [0, 4]; 0: each pair is one direction. Lower is better.

        mean over i of |u_i - v_i|^2, of rows of length 1, which is 2 - 2 cos(u_i, v_i)

    Wang & Isola 2020, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the
    Hypersphere", section 4.1, with alpha = 2.

    Args:
        u, v: (N >= 1, D) each, row i of one and of the other a positive pair.
    """
    return float(((directions(u) - directions(v)) ** 2).sum(axis=1).mean())


def uniformity(embeddings: Array) -> float:
    """How evenly texts spread over the sphere, in [-4 t, 0] = [-8, 0]; 0: all in one place. Lower is better.

        log of the mean over pairs i < j of exp(-t |x_i - x_j|^2), t = 2, of rows of length 1

    Wang & Isola 2020, section 4.2. Of N texts no set reaches the bound: directions drawn at random from many
    dimensions come to -4, for there |x_i - x_j|^2 is about 2.

    Args:
        embeddings: (N >= 2, D), of different texts.
    """
    squared = 2.0 - 2.0 * cosines_of_pairs(embeddings)
    return float(np.log(np.exp(-TEMPERATURE * squared).mean()))


def cosines_of_pairs(embeddings: Array) -> Floats:
    """The cosine of each pair i < j of rows, (N, D) -> (N (N - 1) / 2,), in [-1, 1]."""
    rows = directions(embeddings)
    cosines: Floats = np.clip(rows @ rows.T, -1.0, 1.0)[np.triu_indices(len(rows), k=1)]
    return cosines


def effective_rank(embeddings: Array) -> float:
    """How many dimensions are in use, in [1, min(N, D)]: 1 where all rows point one way, k where k directions that
    are orthogonal to each other are used alike. Higher is richer; it depends on N, so compare figures of one sample.

        exp(- sum over k of p_k log p_k), p_k = s_k / sum of s, s the singular values of the matrix

    Roy & Vetterli 2007, "The effective rank: a measure of effective dimensionality", equation 4.

    Args:
        embeddings: (N >= 1, D), not all zeros; taken as they are, neither centred nor scaled.
    """
    values = np.linalg.svd(check_embeddings(embeddings, "embeddings").astype(np.float64), compute_uv=False)
    shares = values[values > 0] / values.sum() if values.any() else np.ones(1)
    return float(np.exp(-(shares * np.log(shares)).sum()))


def false_negatives(anchors: Array, positives: Array, same: Array) -> float | None:
    """The share of in-batch negatives that are nearer to the anchor than its positive, in [0, 1]; None where there are
    no negatives. They teach the wrong thing if they mean the same as the anchor, and the right one if the model is
    wrong: 0.5 is chance, a trained model's last few percent are worth a look.

        mean over i != j of [cos(a_i, p_j) > cos(a_i, p_i)]

    Args:
        anchors, positives: (N, D) each, row i of one belonging to row i of the other.
        same: (N, N) bool, whether the positive of row j is the same text as the positive or the anchor of row i, by
            which it is no negative.
    """
    cosines = directions(anchors) @ directions(positives).T
    negatives = ~np.asarray(same, dtype=bool) & ~np.eye(len(cosines), dtype=bool)
    if not negatives.any():
        return None
    own = cosine(anchors.astype(np.float64), positives.astype(np.float64))
    # In the precision of the embeddings, so that which of two equal ones is nearer is not up to a rounding.
    nearer = cosines.astype(np.float32) > own.astype(np.float32)[:, None]
    return float(nearer[negatives].mean())
