"""Distillation by hand, against sentence-transformers' losses, and the projection against scikit-learn's PCA."""

from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.util import pairwise_cos_sim, pairwise_dot_score
from sklearn.decomposition import PCA
from torch import Tensor, nn

from sbert_train.errors import DataError, ModelError
from sbert_train.objectives.distillation import embedding_distillation, margin_mse, principal_components
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

B, D = 6, 8


def columns(vectors: list[Tensor]) -> list[Tensor]:
    """Anchors, positives, and each column of the negatives, as sentence-transformers takes them."""
    return vectors[:2] + [vectors[2][:, k] for k in range(vectors[2].shape[1])]


def triplets(
    vectors: list[Tensor], labels: Tensor | None = None, teacher: list[Tensor] | None = None
) -> RoleEmbeddings:
    names = ("anchor", "positive", "negative")
    reference = None if teacher is None else dict(zip(names, teacher, strict=True))
    return rows(labels, reference, **dict(zip(names, vectors, strict=True)))


def test_distances_to_a_teacher_at_known_angles() -> None:
    reference = {"sentence1": 2 * at(60, 0), "sentence2": 2 * at(90, 45)}
    batch = rows(None, reference, sentence1=at(0, 0), sentence2=at(90, 90))
    cosines = [cos(60), 1.0, 1.0, cos(45)]
    squares = [
        1 + 4 - 4 * cosine for cosine in cosines
    ]  # of the differences between vectors of lengths 1 and 2
    assert embedding_distillation(batch).item() == pytest.approx(sum(squares) / 4 / 2, abs=1e-6)
    expected = sum(1 - cosine for cosine in cosines) / 4
    assert embedding_distillation(batch, distance="cosine").item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("distance", ["mse", "cosine"])
def test_values_and_gradients_equal_those_of_sentence_transformers(distance: Any, negatives: int) -> None:
    shapes = (B, D), (B, D), (B, negatives, D)
    ours, teacher = random_vectors(*shapes), [t.detach() for t in random_vectors(*shapes, seed=1)]
    theirs = copies(ours)
    reference = losses.EmbedDistillLoss(nn.Identity(), distance)  # type: ignore[arg-type]
    expected = reference.compute_loss_from_embeddings(columns(theirs), columns(teacher))
    found = embedding_distillation(triplets(ours, teacher=teacher), distance=distance)
    assert_same(found, ours, expected, theirs)


def test_the_references_of_other_roles_play_no_part() -> None:
    ours, teacher = random_vectors((B, D)), random_vectors((B, D), (B, D), seed=1)
    reference = {"anchor": teacher[0], "positive": teacher[1]}
    found = embedding_distillation(rows(None, reference, anchor=ours[0]))
    expected = embedding_distillation(rows(None, {"anchor": teacher[0]}, anchor=ours[0]))
    assert found.item() == expected.item() > 0


def test_an_encoder_that_equals_its_teacher_has_no_loss_and_finite_gradients() -> None:
    for distance in ("mse", "cosine"):
        vectors = random_vectors((B, D), (B, D), (B, 2, D))
        batch = triplets(vectors, teacher=[vector.detach() for vector in vectors])
        loss = embedding_distillation(batch, distance=distance)
        assert loss.item() == pytest.approx(0, abs=1e-6)
        assert_finite_gradients(loss, vectors)


@pytest.mark.parametrize(
    ("reference", "found"),
    [({}, "none"), ({"anchor": torch.ones(B, 12)}, r"\{'anchor': \(6, 12\)\}")],
)
def test_a_teacher_of_other_dimensions_is_told(reference: dict[str, Tensor], found: str) -> None:
    batch = rows(None, reference, anchor=torch.ones(B, D))
    with pytest.raises(
        ModelError, match=rf"expected embeddings of a teacher .*\(6, 8\).*; found {found}\. .* projected"
    ):
        embedding_distillation(batch)


def test_margins_at_known_angles() -> None:
    negative = torch.stack([at(60, 80), at(120, 0)])
    batch = triplets([2 * at(0, 90), at(30, 90), negative], torch.tensor([[0.5, 1.0], [0.0, 3.0]]))
    squares = [
        (2 * cos(30) - 2 * cos(60) - 0.5) ** 2,
        (2 * cos(30) - 2 * cos(80) - 1.0) ** 2,
        (2 - 2 * cos(30)) ** 2,
        (2 - 2 * cos(90) - 3.0) ** 2,
    ]
    assert margin_mse(batch).item() == pytest.approx(sum(squares) / 4, abs=1e-6)


@pytest.mark.parametrize(
    ("negatives", "labels"), [(1, (B,)), (1, (B, 1)), (1, (B, 2)), (3, (B, 3)), (3, (B, 4))]
)
@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_margin_mse_equals_that_of_sentence_transformers(
    similarity: Any, negatives: int, labels: tuple[int, ...]
) -> None:
    ours = [
        vectors.detach().mul(0.5).requires_grad_()
        for vectors in random_vectors((B, D), (B, D), (B, negatives, D))
    ]
    theirs = copies(ours)
    scores = random_vectors(labels, seed=1)[0].detach()
    function = pairwise_dot_score if similarity == "dot" else pairwise_cos_sim
    reference = losses.MarginMSELoss(nn.Identity(), function)  # type: ignore[arg-type]
    expected = reference.compute_loss_from_embeddings(columns(theirs), scores)
    assert_same(margin_mse(triplets(ours, scores), similarity=similarity), ours, expected, theirs)


@pytest.mark.parametrize(("labels", "found"), [((B,), 1), ((B, 2), 2), ((B, 5), 5)])
def test_a_wrong_number_of_scores_is_told(labels: tuple[int, ...], found: int) -> None:
    vectors = random_vectors((B, D), (B, D), (B, 3, D))
    with pytest.raises(DataError, match=rf"expected for each row 3 scores, .*, or 4, .*; found {found}"):
        margin_mse(triplets(vectors, torch.zeros(labels)))


def test_identical_vectors_give_finite_gradients() -> None:
    vectors = [torch.ones(shape, requires_grad=True) for shape in ((2, 3), (2, 3), (2, 1, 3))]
    assert_finite_gradients(margin_mse(triplets(vectors, torch.ones(2)), similarity="cosine"), vectors)


def test_under_autocast_the_losses_are_those_of_float32() -> None:
    vectors = random_vectors((B, D), (B, D), (B, 2, D))
    teacher = [vector.detach() for vector in random_vectors((B, D), (B, D), (B, 2, D), seed=1)]
    batch = triplets(vectors, torch.rand(B, 2), teacher)
    assert_untouched_by_autocast(lambda: embedding_distillation(batch))
    assert_untouched_by_autocast(lambda: embedding_distillation(batch, distance="cosine"))
    assert_untouched_by_autocast(lambda: margin_mse(batch))


def teacher_embeddings() -> Any:
    """Far from the origin, and of another variance in each direction."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6)) + 5.0


def test_principal_components_are_those_of_scikit_learn_up_to_sign() -> None:
    embeddings = teacher_embeddings()
    projection = principal_components(embeddings, 4)
    assert projection.shape == (6, 4) and projection.dtype == np.float32
    expected = PCA(n_components=4, svd_solver="full").fit(embeddings).components_.T
    agreement = (projection * expected).sum(axis=0)
    np.testing.assert_allclose(np.abs(agreement), 1.0, atol=1e-6)
    np.testing.assert_allclose(projection, expected * np.sign(agreement), atol=1e-6)


def test_their_signs_do_not_depend_on_the_order_of_texts() -> None:
    embeddings = teacher_embeddings()
    projection = principal_components(embeddings, 4)
    np.testing.assert_allclose(principal_components(embeddings[::-1], 4), projection, atol=1e-6)
    assert (projection[np.abs(projection).argmax(axis=0), range(4)] > 0).all()


def test_in_all_dimensions_they_keep_every_dot_product() -> None:
    embeddings = teacher_embeddings()
    projected = embeddings @ principal_components(embeddings, 6)
    np.testing.assert_allclose(projected @ projected.T, embeddings @ embeddings.T, rtol=1e-5)


def test_a_teacher_that_is_too_narrow_is_told() -> None:
    with pytest.raises(ModelError, match=r"a teacher of 6 dimensions has no 8 principal components"):
        principal_components(teacher_embeddings(), 8)


def test_too_few_texts_are_told() -> None:
    with pytest.raises(DataError, match=r"need more than 4 texts; found 4"):
        principal_components(teacher_embeddings()[:4], 4)
