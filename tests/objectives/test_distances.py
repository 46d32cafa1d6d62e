"""Distances: pair by pair and each with each, at known points, at coincident ones, and against torch's own."""

import math

import pytest
import torch
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.distances import ALL_PAIRS, DISTANCES
from tests.objectives.batches import assert_same, copies, random_vectors


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cosine", [1 - 24 / 25, 2.0]), ("euclidean", [math.sqrt(2), 3.0]), ("manhattan", [2.0, 3.0])],
)
def test_the_distances_of_known_points(name: str, expected: list[float]) -> None:
    one, two = torch.tensor([[3.0, 4.0], [0.0, 2.0]]), torch.tensor([[4.0, 3.0], [0.0, -1.0]])
    assert DISTANCES[name](one, two).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", DISTANCES)
def test_each_with_each_is_pair_by_pair_over_all_pairs(name: str) -> None:
    # more than the 25 rows from which on torch's euclidean shortcut is in use
    ours = [tensor.detach().float().requires_grad_() for tensor in random_vectors((30, 8), (27, 8))]
    theirs = copies(ours)
    weights = torch.rand(30, 27)
    found = ALL_PAIRS[name](*ours)
    assert found.shape == (30, 27)
    expected = DISTANCES[name](theirs[0][:, None], theirs[1])
    assert_same((found * weights).mean(), ours, (expected * weights).mean(), theirs)


def test_euclidean_distances_of_near_vectors_are_exact() -> None:
    rows = torch.randn(30, 64, generator=torch.Generator().manual_seed(0))
    near = rows + 1e-4
    expected = 1e-4 * math.sqrt(64)
    shortcut = torch.cdist(rows, near).diagonal()
    assert (shortcut - expected).abs().max() > 5e-4, "the shortcut must be off for this test to mean anything"
    assert (ALL_PAIRS["euclidean"](rows, near).diagonal() - expected).abs().max() < 1e-6


@pytest.mark.parametrize("name", DISTANCES)
def test_values_and_gradients_equal_those_of_sentence_transformers(name: str) -> None:
    ours = random_vectors((6, 8), (6, 8))
    theirs = copies(ours)
    metric = vars(TripletDistanceMetric)[name.upper()]
    weights = torch.rand(6)
    assert_same((DISTANCES[name](*ours) * weights).mean(), ours, (metric(*theirs) * weights).mean(), theirs)


@pytest.mark.parametrize(("name", "p"), [("euclidean", 2.0), ("manhattan", 1.0)])
def test_from_pairwise_distance_they_differ_by_its_shift_alone(name: str, p: float) -> None:
    ours = random_vectors((6, 8), (6, 8))
    theirs = copies(ours)
    shifted = DISTANCES[name](ours[0] + 1e-6, ours[1])
    assert_same(
        shifted.mean(), ours, F.pairwise_distance(theirs[0], theirs[1], p=p).mean(), theirs, atol=1e-9
    )


def gradients(distance: Tensor, vectors: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(distance.sum(), vectors))


@pytest.mark.parametrize("name", DISTANCES)
def test_equal_vectors_have_distance_and_gradient_0(name: str) -> None:
    one = torch.tensor([[0.6, 0.8]], requires_grad=True)
    two = one.detach().clone().requires_grad_()
    for distance in (DISTANCES[name](one, two), ALL_PAIRS[name](one, two)):
        assert distance.abs().max() < 1e-6
        for gradient in gradients(distance, [one, two]):
            assert gradient.abs().max() < 1e-6
