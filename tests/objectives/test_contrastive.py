"""Contrastive losses against formulas worked by hand, and against sentence-transformers' losses."""

from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.losses.contrastive import SiameseDistanceMetric
from torch import Tensor, nn

from sbert_train.objectives.contrastive import contrastive, online_contrastive
from sbert_train.objectives.distances import DISTANCES
from sbert_train.objectives.embeddings import RoleEmbeddings
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

METRICS: dict[str, Any] = {
    "cosine": SiameseDistanceMetric.COSINE_DISTANCE,
    "euclidean": SiameseDistanceMetric.EUCLIDEAN,
    "manhattan": SiameseDistanceMetric.MANHATTAN,
}
LABELS = torch.tensor([1, 0, 0, 1, 0, 1, 0, 1, 1, 0])
KINDS = {
    "classes": LABELS,
    "scores": LABELS.float(),
    "all together": torch.ones(10),
    "all apart": torch.zeros(10),
}


def pairs(one: Tensor, two: Tensor, labels: Tensor) -> RoleEmbeddings:
    return rows(labels, sentence1=one, sentence2=two)


def pairs_at_all_distances(distance: str) -> list[Tensor]:
    """Ten pairs, the nearest of them of label 1 and the farthest of label 0, at distances of the order of 1."""
    one, two = random_vectors((10, 8), (10, 8))
    rising = DISTANCES[distance](one, two).argsort()
    order = rising[[0, 3, 5, 6, 1, 7, 2, 8, 4, 9]]
    scale = {"cosine": 1.0, "euclidean": 0.2, "manhattan": 0.1}[distance]
    return [vectors.detach()[order].mul(scale).requires_grad_() for vectors in (one, two)]


def shift(distance: str) -> float:
    """What torch's pairwise_distance, of which sentence-transformers makes use, adds to the difference."""
    return 0.0 if distance == "cosine" else 1e-6


def test_the_loss_of_known_angles() -> None:
    batch = pairs(at(0, 0, 0), at(60, 45, 120), torch.tensor([1, 0, 0]))
    expected = [(1 - cos(60)) ** 2, (0.5 - (1 - cos(45))) ** 2, 0.0]  # the last is beyond the margin
    assert contrastive(batch).item() == pytest.approx(sum(expected) / 3, abs=1e-6)


def test_online_it_is_the_sum_over_the_hard_pairs() -> None:
    labels = torch.tensor([1, 1, 1, 0, 0, 0])
    batch = pairs(at(0, 0, 0, 0, 0, 0), at(10, 40, 50, 30, 45, 80), labels)
    # 40 and 50 degrees are farther than the nearest negative, 30 and 45 nearer than the farthest positive
    expected = (1 - cos(40)) ** 2 + (1 - cos(50)) ** 2 + (cos(30) - 0.5) ** 2 + (cos(45) - 0.5) ** 2
    assert online_contrastive(batch).item() == pytest.approx(expected, abs=1e-6)


def test_without_hard_pairs_there_is_no_online_loss() -> None:
    one, two = at(0, 0).requires_grad_(), at(10, 30)
    loss = online_contrastive(pairs(one, two, torch.tensor([1, 0])))
    assert loss.item() == 0
    assert_finite_gradients(loss, [one])


@pytest.mark.parametrize("labels", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("distance", DISTANCES)
def test_it_is_twice_the_loss_of_sentence_transformers(distance: Any, labels: Tensor) -> None:
    ours = pairs_at_all_distances(distance)
    theirs = copies(ours)
    margin = DISTANCES[distance](*ours).median().item()
    reference = losses.ContrastiveLoss(nn.Identity(), METRICS[distance], margin)  # type: ignore[arg-type]
    expected = 2 * reference.compute_loss_from_embeddings(theirs, labels)
    batch = pairs(ours[0] + shift(distance), ours[1], labels)
    assert_same(contrastive(batch, distance=distance, margin=margin), ours, expected, theirs)


@pytest.mark.parametrize("labels", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("distance", DISTANCES)
def test_online_it_is_the_loss_of_sentence_transformers(distance: Any, labels: Tensor) -> None:
    ours = pairs_at_all_distances(distance)
    theirs = copies(ours)
    margin = DISTANCES[distance](*ours).max().item() + 0.1
    reference = losses.OnlineContrastiveLoss(nn.Identity(), METRICS[distance], margin)  # type: ignore[arg-type]
    expected = reference.compute_loss_from_embeddings(theirs, labels)
    batch = pairs(ours[0] + shift(distance), ours[1], labels)
    found = online_contrastive(batch, distance=distance, margin=margin)
    everything = 10 * contrastive(batch, distance=distance, margin=margin)
    assert found.item() < everything.item() - 1e-3, "some pair must not be hard"
    assert_same(
        found / 10, ours, expected / 10, theirs
    )  # per pair, for a sum of ten squares is rounded to 1e-6


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("label", [0, 1])
def test_identical_vectors_give_finite_gradients(distance: Any, label: int) -> None:
    one, two = at(0, 90, 30).requires_grad_(), at(0, 90, 40).requires_grad_()
    batch = pairs(one, two, torch.tensor([label, label, 1 - label]))
    assert_finite_gradients(contrastive(batch, distance=distance), [one, two])
    assert_finite_gradients(online_contrastive(batch, distance=distance), [one, two])


@pytest.mark.parametrize("loss", [contrastive, online_contrastive])
def test_under_autocast_the_losses_are_those_of_float32(loss: Any) -> None:
    one, two = pairs_at_all_distances("cosine")
    assert_untouched_by_autocast(lambda: loss(pairs(one, two, LABELS)))
