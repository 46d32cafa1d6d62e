"""Losses of graded pairs against plain loops, and against sentence-transformers' losses."""

import cmath
import math
from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.graded import angle, cosent
from tests.objectives.batches import (
    assert_finite_gradients,
    assert_same,
    assert_untouched_by_autocast,
    at,
    copies,
    cos,
    random_vectors,
    rows,
)

LOSSES: dict[Any, Any] = {cosent: losses.CoSENTLoss, angle: losses.AnglELoss}
SCORES = torch.tensor([0.2, 0.9, 0.2, 1.0, 0.0, 0.55])  # two are tied


def pairs(one: Tensor, two: Tensor, scores: Tensor) -> RoleEmbeddings:
    return rows(scores, sentence1=one, sentence2=two)


def by_a_loop(similarities: list[float], scores: list[float], scale: float) -> float:
    total = 1.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if scores[i] > scores[j]:
                total += math.exp(scale * (similarities[j] - similarities[i]))
    return math.log(total)


def test_cosent_is_the_formula_by_a_plain_loop() -> None:
    angles, scores = [10, 70, 40, 120], [4.0, 5.0, 1.0, 1.0]
    batch = pairs(at(0, 0, 0, 0), 3 * at(*angles), torch.tensor(scores))
    expected = by_a_loop([cos(angle) for angle in angles], scores, 5.0)
    assert cosent(batch, scale=5.0).item() == pytest.approx(expected, abs=1e-6)


def test_angle_is_the_formula_in_complex_numbers() -> None:
    one, two = [vectors.detach() for vectors in random_vectors((4, 6), (4, 6))]
    scores = [0.5, 0.1, 0.9, 0.5]
    similarities = []
    for u, v in zip((one / one.norm(dim=1, keepdim=True)).tolist(), two.tolist(), strict=True):
        length = math.hypot(*v)
        z = [complex(u[k], u[k + 3]) for k in range(3)]
        w = [complex(v[k], v[k + 3]) / length for k in range(3)]
        product = sum(a * b.conjugate() for a, b in zip(z, w, strict=True))
        similarities.append(abs(product.real + product.imag))
    expected = by_a_loop(similarities, scores, 5.0)
    assert angle(pairs(one, two, torch.tensor(scores)), scale=5.0).item() == pytest.approx(expected, abs=1e-6)


def test_in_the_plane_it_is_the_angle_between_two_complex_numbers() -> None:
    scores = torch.tensor([1.0, 0.0])
    turned = cmath.exp(1j * math.radians(30))
    expected = by_a_loop([turned.real + turned.imag, 1.0], [1.0, 0.0], 2.0)
    assert angle(pairs(at(50, 10), at(20, 10), scores), scale=2.0).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("dimension", [8, 7])
@pytest.mark.parametrize("loss", LOSSES)
def test_values_and_gradients_equal_those_of_sentence_transformers(
    loss: Any, dimension: int, scale: float
) -> None:
    ours = random_vectors((6, dimension), (6, dimension))
    theirs = copies(ours)
    expected = LOSSES[loss](nn.Identity(), scale=scale).compute_loss_from_embeddings(theirs, SCORES)
    found = loss(pairs(ours[0], ours[1], SCORES), scale=scale)
    # divided, so that the values are of the order of 1
    assert_same(found / scale, ours, expected / scale, theirs)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_scores_alone_counts(loss: Any) -> None:
    one, two = random_vectors((6, 8), (6, 8))
    assert loss(pairs(one, two, SCORES)).item() == loss(pairs(one, two, SCORES.exp() * 7 - 3)).item()
    assert loss(pairs(one, two, SCORES)).item() != loss(pairs(one, two, -SCORES)).item()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count", [1, 4])
def test_where_no_two_scores_differ_there_is_no_loss(loss: Any, count: int) -> None:
    one, two = random_vectors((count, 8), (count, 8))
    found = loss(pairs(one, two, torch.full((count,), 0.5)))
    assert found.item() == 0
    assert_finite_gradients(found, [one, two])
    assert one.grad is not None and not one.grad.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_identical_and_opposite_vectors_give_finite_gradients(loss: Any) -> None:
    one, two = at(0, 90, 0, 45).requires_grad_(), at(0, 90, 180, 90).requires_grad_()
    assert_finite_gradients(loss(pairs(one, two, torch.tensor([0.0, 1.0, 0.5, 0.2]))), [one, two])


@pytest.mark.parametrize("loss", LOSSES)
def test_under_autocast_the_losses_are_those_of_float32(loss: Any) -> None:
    one, two = random_vectors((6, 8), (6, 8))
    assert_untouched_by_autocast(lambda: loss(pairs(one, two, SCORES)))
