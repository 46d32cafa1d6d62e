"""Triplet losses against plain loops over triplets, and against sentence-transformers' losses."""

from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.losses.batch_hard_triplet import (
    BatchHardTripletLossDistanceFunction,
)
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
from torch import Tensor, nn

from sbert_train.objectives.distances import DISTANCES
from sbert_train.objectives.triplet import batch_triplet, triplet
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

BATCH_DISTANCES = {
    "cosine": BatchHardTripletLossDistanceFunction.cosine_distance,
    "euclidean": BatchHardTripletLossDistanceFunction.euclidean_distance,
}
BATCH_LOSSES: dict[str, Any] = {
    "hard": losses.BatchHardTripletLoss,
    "semi_hard": losses.BatchSemiHardTripletLoss,
}
LABELS = torch.tensor([3, 1, 3, 0, 1, 3, 0, 1, 1])  # each at least twice


def test_the_loss_of_known_angles() -> None:
    negative = torch.stack([at(30, 170), at(120, 80)])
    batch = rows(anchor=at(0, 90), positive=at(20, 150), negative=negative)
    # the second negative of the first row is beyond the margin
    expected = [cos(30) - cos(20) + 0.5, 0.0, cos(30) - cos(60) + 0.5, cos(10) - cos(60) + 0.5]
    found = triplet(batch, distance="cosine", margin=0.5)
    assert cos(170) - cos(20) + 0.5 < 0
    assert found.item() == pytest.approx(sum(expected) / 4, abs=1e-6)


def test_euclidean_distance_and_the_margin_of_the_paper_are_the_default() -> None:
    batch = rows(
        anchor=torch.tensor([[0.0, 0.0]]),
        positive=torch.tensor([[3.0, 4.0]]),
        negative=torch.tensor([[[0.0, 2.0]]]),
    )
    assert triplet(batch).item() == pytest.approx(5 - 2 + 1)


@pytest.mark.parametrize("distance", DISTANCES)
def test_values_and_gradients_equal_those_of_sentence_transformers(distance: Any) -> None:
    ours = random_vectors((6, 8), (6, 8), (6, 1, 8))
    theirs = copies(ours)
    batch = rows(anchor=ours[0], positive=ours[1], negative=ours[2])
    metric = vars(TripletDistanceMetric)[distance.upper()]
    reference = losses.TripletLoss(nn.Identity(), distance_metric=metric, triplet_margin=0.7)  # type: ignore[arg-type]
    columns = [theirs[0], theirs[1], theirs[2][:, 0]]
    expected = reference.compute_loss_from_embeddings(columns, None)  # type: ignore[arg-type]
    assert_same(triplet(batch, distance=distance, margin=0.7), ours, expected, theirs)


def test_several_negatives_are_the_mean_over_single_ones() -> None:
    anchor, positive, negative = random_vectors((6, 8), (6, 8), (6, 3, 8))
    single = [triplet(rows(anchor=anchor, positive=positive, negative=negative[:, [k]])) for k in range(3)]
    assert len({one.item() for one in single}) == 3
    found = triplet(rows(anchor=anchor, positive=positive, negative=negative))
    assert found.item() == pytest.approx(sum(one.item() for one in single) / 3, abs=1e-6)


@pytest.mark.parametrize("distance", DISTANCES)
def test_identical_vectors_give_finite_gradients(distance: Any) -> None:
    anchor, positive = [at(0, 90).requires_grad_() for _ in range(2)]
    negative = at(0, 90)[:, None].clone().requires_grad_()
    loss = triplet(rows(anchor=anchor, positive=positive, negative=negative), distance=distance)
    assert loss.item() == pytest.approx(1.0, abs=1e-6)
    assert_finite_gradients(loss, [anchor, positive, negative])


def hard_by_hand(texts: Tensor, labels: list[int], margin: float) -> float:
    """Equation 5 of Hermans et al. over those texts that have a positive and a negative."""
    found = []
    for a, text in enumerate(texts):
        apart = [float((text - other).norm()) for other in texts]
        to_positives = [apart[i] for i in range(len(texts)) if i != a and labels[i] == labels[a]]
        to_negatives = [apart[i] for i in range(len(texts)) if labels[i] != labels[a]]
        if to_positives and to_negatives:
            found.append(max(max(to_positives) - min(to_negatives) + margin, 0.0))
    return sum(found) / len(found)


def semi_hard_by_hand(texts: Tensor, labels: list[int], margin: float) -> tuple[float, int]:
    """The loss, and the number of pairs that had no negative farther than their positive."""
    found, without = [], 0
    for a, text in enumerate(texts):
        apart = [float((text - other).norm()) for other in texts]
        to_negatives = [apart[i] for i in range(len(texts)) if labels[i] != labels[a]]
        for p in range(len(texts)):
            if p != a and labels[p] == labels[a] and to_negatives:
                farther = [to_negative for to_negative in to_negatives if to_negative > apart[p]]
                without += not farther
                chosen = min(farther) if farther else max(to_negatives)
                found.append(max(apart[p] - chosen + margin, 0.0))
    return sum(found) / len(found), without


def test_batch_hard_is_the_formula_by_a_plain_loop() -> None:
    texts, labels = at(0, 10, 50, 60, 200, 35), [0, 0, 1, 1, 2, 0]  # the text at 200 degrees is alone
    found = batch_triplet(rows(torch.tensor(labels), sentence1=texts), margin=0.3)
    assert found.item() == pytest.approx(hard_by_hand(texts, labels, 0.3), abs=1e-6)


def test_batch_semi_hard_is_the_formula_by_a_plain_loop() -> None:
    texts, labels = at(0, 10, 50, 60, 100, 180), [0, 0, 1, 1, 2, 0]
    expected, without = semi_hard_by_hand(texts, labels, 0.3)
    assert without > 0, "some pair must have no negative farther than its positive"
    found = batch_triplet(rows(torch.tensor(labels), sentence1=texts), mining="semi_hard", margin=0.3)
    assert found.item() == pytest.approx(expected, abs=1e-6)


def test_a_negative_as_far_as_the_positive_is_not_semi_hard() -> None:
    texts, labels = torch.tensor([[0.0], [1.0], [-1.0], [3.0]]), torch.tensor([0, 0, 1, 1])
    # from 0 the positive is 1 away, negatives 1 and 3; from 1, 1 and 2, 2; from -1, 4 and 1, 2; from 3, 4 and 3, 2
    expected = [1 - 3 + 5, 1 - 2 + 5, 4 - 2 + 5, 4 - 3 + 5]
    found = batch_triplet(rows(labels, sentence1=texts), mining="semi_hard", margin=5.0)
    assert found.item() == pytest.approx(sum(expected) / 4)


@pytest.mark.parametrize("margin", [0.2, 5.0])
@pytest.mark.parametrize("distance", BATCH_DISTANCES)
@pytest.mark.parametrize("mining", BATCH_LOSSES)
def test_mined_triplets_equal_those_of_sentence_transformers(
    mining: Any, distance: Any, margin: float
) -> None:
    ours = random_vectors((9, 4), seed=1)
    theirs = copies(ours)
    reference = BATCH_LOSSES[mining](nn.Identity(), distance_metric=BATCH_DISTANCES[distance], margin=margin)
    expected = reference.compute_loss_from_embeddings(theirs, LABELS)
    loss = batch_triplet(rows(LABELS, sentence1=ours[0]), mining=mining, distance=distance, margin=margin)
    assert_same(loss, ours, expected, theirs)


def test_texts_without_a_positive_are_left_out_where_sentence_transformers_counts_them() -> None:
    texts, labels = at(0, 10, 50, 60, 45), torch.tensor([0, 0, 1, 1, 2])  # the last has no positive
    found = batch_triplet(rows(labels, sentence1=texts), margin=0.5).item()
    theirs = losses.BatchHardTripletLoss(nn.Identity(), margin=0.5)  # type: ignore[arg-type]
    expected = theirs.compute_loss_from_embeddings([texts], labels).item()
    nearest = float((at(45) - at(50)).norm())
    assert 0.5 - nearest > 0
    assert found == pytest.approx((expected * 5 - (0.5 - nearest)) / 4, abs=1e-6)
    assert abs(found - expected) > 1e-3


@pytest.mark.parametrize("mining", BATCH_LOSSES)
def test_one_label_alone_is_no_loss_where_sentence_transformers_has_one(mining: Any) -> None:
    texts, labels = at(0, 10, 50).requires_grad_(), torch.tensor([4, 4, 4])
    loss = batch_triplet(rows(labels, sentence1=texts), mining=mining, margin=0.5)
    theirs = BATCH_LOSSES[mining](nn.Identity(), margin=0.5).compute_loss_from_embeddings([texts], labels)
    assert theirs.item() >= 0.5
    assert loss.item() == 0
    loss.backward()
    assert texts.grad is not None and not texts.grad.any()


@pytest.mark.parametrize("mining", BATCH_LOSSES)
@pytest.mark.parametrize("labels", [[0, 1, 2], [7]])
def test_labels_that_occur_once_are_no_loss(mining: Any, labels: list[int]) -> None:
    texts = at(0, 10, 50)[: len(labels)].requires_grad_()
    loss = batch_triplet(rows(torch.tensor(labels), sentence1=texts), mining=mining)
    assert loss.item() == 0
    assert_finite_gradients(loss, [texts])


@pytest.mark.parametrize("distance", BATCH_DISTANCES)
@pytest.mark.parametrize("mining", BATCH_LOSSES)
def test_identical_texts_in_a_batch_give_finite_gradients(mining: Any, distance: Any) -> None:
    texts = at(0, 0, 0, 90).requires_grad_()
    loss = batch_triplet(rows(torch.tensor([0, 0, 1, 1]), sentence1=texts), mining=mining, distance=distance)
    assert loss.item() > 0.5
    assert_finite_gradients(loss, [texts])


@pytest.mark.parametrize("distance", DISTANCES)
def test_under_autocast_the_losses_are_those_of_float32(distance: Any) -> None:
    anchor, positive, negative = random_vectors((9, 8), (9, 8), (9, 2, 8))
    batch = rows(LABELS, sentence1=anchor, anchor=anchor, positive=positive, negative=negative)
    assert_untouched_by_autocast(lambda: triplet(batch, distance=distance))
    assert_untouched_by_autocast(lambda: batch_triplet(batch, distance=distance))
