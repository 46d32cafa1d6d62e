"""Each figure of an embedding space against a plain loop, its published snippet, or a set whose figure is known."""

import math

import numpy as np
import pytest
import torch

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.geometry import (
    alignment,
    cosines_of_pairs,
    effective_rank,
    false_negatives,
    uniformity,
)


def sample(n: int = 12, d: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def at_angles(*degrees: float) -> np.ndarray:
    turns = np.radians(degrees)
    return np.stack([np.cos(turns), np.sin(turns)], axis=1)


def test_alignment_and_uniformity_are_those_of_the_published_code() -> None:
    x, y = (torch.nn.functional.normalize(torch.from_numpy(sample(seed=seed)).double()) for seed in (1, 2))
    assert alignment(x.numpy(), y.numpy()) == pytest.approx(float((x - y).norm(p=2, dim=1).pow(2).mean()))
    assert uniformity(x.numpy()) == pytest.approx(
        float(torch.pdist(x, p=2).pow(2).mul(-2).exp().mean().log())
    )


def test_alignment_of_pairs_at_known_angles() -> None:
    u, v = at_angles(0, 0, 0), at_angles(0, 90, 180)
    assert alignment(u[:1], v[:1]) == 0.0
    assert alignment(u, v) == pytest.approx((0 + 2 + 4) / 3)
    assert alignment(3 * u, 0.1 * v) == pytest.approx(2), "lengths do not count"


def test_uniformity_of_antipodes_of_a_square_and_of_one_point() -> None:
    assert uniformity(at_angles(0, 180)) == pytest.approx(-8), "-t times the squared distance, 4"
    square = [2, 4, 2, 2, 4, 2]  # the squared distances of its six pairs
    by_hand = math.log(sum(math.exp(-2 * one) for one in square) / 6)
    assert uniformity(at_angles(0, 90, 180, 270)) == pytest.approx(by_hand)
    assert uniformity(np.ones((4, 3))) == pytest.approx(0)


def test_the_cosines_of_pairs_are_those_of_a_plain_loop() -> None:
    rows = sample()
    by_hand = [
        float(rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]))
        for i in range(len(rows))
        for j in range(i + 1, len(rows))
    ]
    np.testing.assert_allclose(cosines_of_pairs(rows), by_hand, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_effective_rank_of_n_orthonormal_vectors_is_n(n: int) -> None:
    turned = np.linalg.qr(sample(7, 7))[0][:n]
    assert effective_rank(turned) == pytest.approx(n)


def test_the_effective_rank_of_one_direction_is_one() -> None:
    assert effective_rank(np.ones((6, 4))) == pytest.approx(1)
    assert effective_rank(np.outer([1, -2, 3], [1, 0, 1])) == pytest.approx(1), (
        "lengths and signs do not count"
    )


def test_the_effective_rank_of_known_singular_values() -> None:
    shares = np.array([0.75, 0.25])
    assert effective_rank(np.diag([3.0, 1.0])) == pytest.approx(math.exp(-(shares * np.log(shares)).sum()))


def test_false_negatives_are_counted_as_by_a_plain_loop() -> None:
    a, p = sample(9, 3, seed=3), sample(9, 3, seed=4)
    same = np.zeros((9, 9), dtype=bool)
    same[2, 5] = same[5, 2] = True
    cos = [[float(x @ y / np.linalg.norm(x) / np.linalg.norm(y)) for y in p] for x in a]
    pairs = [(i, j) for i in range(9) for j in range(9) if i != j and not same[i, j]]
    wrong = sum(cos[i][j] > cos[i][i] for i, j in pairs)
    assert 0 < wrong < len(pairs) == 70
    assert false_negatives(a, p, same) == pytest.approx(wrong / 70)


def test_false_negatives_of_one_row_or_of_equal_texts_are_none() -> None:
    assert false_negatives(sample(1), sample(1), np.zeros((1, 1))) is None
    assert false_negatives(sample(3), sample(3), np.ones((3, 3))) is None


def test_embeddings_that_are_not_finite_have_no_figures() -> None:
    broken = sample()
    broken[3, 1] = np.nan
    for figure in (uniformity, effective_rank, cosines_of_pairs):
        with pytest.raises(EvaluationError, match="1 of 12 hold NaN or infinity"):
            figure(broken)
    with pytest.raises(EvaluationError, match="1 of 12 hold NaN"):
        alignment(sample(), broken)


@pytest.mark.parametrize("seed", range(6))
def test_equal_embeddings_are_not_nearer_than_each_other(seed: int) -> None:
    one, other = np.random.default_rng(seed).normal(size=(2, 1, 384)).astype(np.float32)
    same = np.zeros((128, 128), dtype=bool)
    assert false_negatives(np.repeat(one, 128, 0), np.repeat(other, 128, 0), same) == 0.0
