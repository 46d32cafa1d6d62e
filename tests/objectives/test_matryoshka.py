"""Matryoshka by hand, against sentence-transformers' MatryoshkaLoss, and what becomes of references."""

import math
from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from sbert_train.errors import ModelError
from sbert_train.objectives.cosine_regression import cosine_regression
from sbert_train.objectives.distillation import embedding_distillation
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.graded import cosent
from sbert_train.objectives.in_batch_negatives import InBatchNegatives, in_batch_negatives
from sbert_train.objectives.matryoshka import Matryoshka
from sbert_train.objectives.softmax import SoftmaxClassifier
from tests.objectives.batches import (
    assert_finite_gradients,
    assert_same,
    assert_untouched_by_autocast,
    copies,
    random_vectors,
    rows,
)

B, D = 6, 8
SCORES = torch.tensor([0.2, 0.9, 0.2, 1.0, 0.0, 0.55])


class Columns(nn.Module):
    """Stands for a sentence-transformers model whose input holds its output."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self) -> int:
        return D


def columns(vectors: list[Tensor]) -> list[dict[str, Tensor]]:
    return [{"vectors": column} for column in vectors]


def test_the_loss_worked_by_hand() -> None:
    one, two = torch.tensor([[3.0, 4.0, 12.0]]), torch.tensor([[4.0, -3.0, 5.0]])
    batch = rows(torch.tensor([0.5]), sentence1=one, sentence2=two)
    loss = Matryoshka([cosine_regression] * 3, [3, 2, 1], [1.0, 0.5, 2.0])
    cosines = [60 / (13 * math.sqrt(50)), 0.0, 1.0]
    expected = sum(w * (cosine - 0.5) ** 2 for w, cosine in zip([1, 0.5, 2], cosines, strict=True))
    assert loss(batch).item() == pytest.approx(expected, abs=1e-6)


def seen(batch: RoleEmbeddings) -> Tensor:
    """A loss that notes what it is given."""
    NOTED.append(batch)
    return batch.vectors["anchor"].sum()


NOTED: list[RoleEmbeddings] = []


def test_each_loss_sees_unit_vectors_of_its_dimensions_and_a_whole_guide() -> None:
    anchor, negative, guide = random_vectors((B, D), (B, 2, D), (B, 12))
    NOTED.clear()
    batch = rows(SCORES, {"anchor": guide}, anchor=anchor, negative=negative)
    Matryoshka([seen, seen], [8, 3])(batch)
    for noted, dimension in zip(NOTED, [8, 3], strict=True):
        assert noted.vectors["anchor"].shape == (B, dimension)
        assert noted.vectors["negative"].shape == (B, 2, dimension)
        assert all((vectors.norm(dim=-1) - 1).abs().max() < 1e-6 for vectors in noted.vectors.values())
        assert noted.reference["anchor"] is guide
        assert noted.labels is SCORES and noted.text_keys is batch.text_keys


def test_a_teacher_is_cut_like_the_embeddings() -> None:
    vectors, teacher = random_vectors((B, D), (B, D))
    batch = rows(None, {"anchor": teacher.detach()}, anchor=vectors)
    NOTED.clear()
    Matryoshka([seen], [3], cut_reference=True)(batch)
    assert torch.equal(NOTED[0].reference["anchor"], nn.functional.normalize(teacher.detach()[:, :3], dim=-1))
    loss = Matryoshka([embedding_distillation] * 2, [8, 3], cut_reference=True)
    same = rows(None, {"anchor": 2 * vectors.detach()}, anchor=vectors)
    assert loss(same).item() == pytest.approx(0.0, abs=1e-6) != loss(batch).item()


def test_a_teacher_that_is_not_cut_does_not_fit() -> None:
    vectors, teacher = random_vectors((B, D), (B, D))
    batch = rows(None, {"anchor": teacher.detach()}, anchor=vectors)
    with pytest.raises(ModelError, match=r"expected embeddings of a teacher .*\(6, 3\).*; found .*\(6, 8\)"):
        Matryoshka([embedding_distillation], [3])(batch)


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 0.3]])
@pytest.mark.parametrize("negatives", [0, 2])
def test_around_in_batch_negatives_it_equals_that_of_sentence_transformers(
    negatives: int, weights: Any
) -> None:
    shapes = [(B, D), (B, D)] + ([(B, negatives, D)] if negatives else [])
    ours = random_vectors(*shapes)
    theirs = copies(ours)
    model: Any = Columns()
    inner = losses.MultipleNegativesRankingLoss(model, scale=5.0)
    reference = losses.MatryoshkaLoss(model, inner, [8, 5, 2], weights)
    expected = reference(
        columns(theirs[:2] + [column for t in theirs[2:] for column in t.unbind(1)]),
        None,
    )
    loss = Matryoshka([InBatchNegatives(scale=5.0) for _ in range(3)], [8, 5, 2], weights)
    batch = rows(**dict(zip(("anchor", "positive", "negative"), ours, strict=False)))
    assert_same(loss(batch) / 3, ours, expected / 3, theirs)


def test_around_cosent_it_equals_that_of_sentence_transformers() -> None:
    ours = random_vectors((B, D), (B, D))
    theirs = copies(ours)
    model: Any = Columns()
    reference = losses.MatryoshkaLoss(model, losses.CoSENTLoss(model, scale=5.0), [8, 5, 2], [1, 2, 3])
    expected = reference(columns(theirs), SCORES)
    loss = Matryoshka([lambda batch: cosent(batch, scale=5.0)] * 3, [8, 5, 2], [1, 2, 3])
    batch = rows(SCORES, sentence1=ours[0], sentence2=ours[1])
    # per unit of weight and of scale
    assert_same(loss(batch) / 30, ours, expected / 30, theirs)


def test_losses_with_weights_of_their_own_are_trained_and_saved_with_it() -> None:
    classifiers = [SoftmaxClassifier(dimension, 3) for dimension in (8, 2)]
    loss = Matryoshka([*classifiers, in_batch_negatives], [8, 2, 4])
    assert set(loss.parameters()) == {p for classifier in classifiers for p in classifier.parameters()}
    assert {name: tuple(weight.shape) for name, weight in loss.state_dict().items()} == {
        "trained.0.linear.weight": (3, 24),
        "trained.0.linear.bias": (3,),
        "trained.1.linear.weight": (3, 6),
        "trained.1.linear.bias": (3,),
    }
    one, two = random_vectors((B, D), (B, D))
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    batch = rows(labels, sentence1=one, sentence2=two, anchor=one, positive=two)
    loss(batch).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in loss.parameters())


@pytest.mark.parametrize(
    ("count", "dims", "weights"), [(0, [], None), (2, [8], None), (1, [8], [1.0, 2.0]), (1, [8, 4], [1.0])]
)
def test_each_dimension_has_a_loss_and_a_weight(count: int, dims: list[int], weights: Any) -> None:
    with pytest.raises(
        ValueError, match="expected a loss and a weight for each of at least one dimension; found"
    ):
        Matryoshka([cosent] * count, dims, weights)


def test_more_dimensions_than_there_are_are_told() -> None:
    vectors = random_vectors((B, D), (B, D))
    batch = rows(SCORES, sentence1=vectors[0], sentence2=vectors[1])
    with pytest.raises(
        ModelError, match=r"at least 9 dimensions; found 8 in the role sentence1; name no more"
    ):
        Matryoshka([cosent], [9])(batch)


def test_identical_and_zero_vectors_give_finite_gradients() -> None:
    vectors = [torch.tensor([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]], requires_grad=True) for _ in range(2)]
    batch = rows(anchor=vectors[0], positive=vectors[1])
    assert_finite_gradients(Matryoshka([in_batch_negatives] * 2, [3, 2])(batch), vectors)


def test_under_autocast_the_loss_is_that_of_float32() -> None:
    anchor, positive = random_vectors((B, D), (B, D))
    loss = Matryoshka([in_batch_negatives] * 2, [8, 3])
    assert_untouched_by_autocast(lambda: loss(rows(anchor=anchor, positive=positive)))
