"""Hardness weights and the guide: by plain loops, and against sentence-transformers' losses."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch
from sentence_transformers import util
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
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
from tests.tiny import make_encoder

B, D = 6, 8
HARDNESS = {
    "none": None,
    "in_batch": "in_batch_negatives",
    "hard": "hard_negatives",
    "all": "all_negatives",
}


def roles(vectors: Sequence[Tensor]) -> dict[str, Tensor]:
    return dict(zip(("anchor", "positive", "negative"), vectors, strict=False))


def columns(vectors: Sequence[Tensor]) -> list[Tensor]:
    """Anchors, positives, and each column of the negatives, as sentence-transformers takes them."""
    negative = vectors[2].unbind(1) if len(vectors) > 2 else []
    return [*vectors[:2], *negative]


def shapes(negatives: int) -> list[tuple[int, ...]]:
    return [(B, D), (B, D)] + ([(B, negatives, D)] if negatives else [])


def cross_entropy(logits: list[float], own: int) -> float:
    return math.log(sum(math.exp(logit) for logit in logits)) - logits[own]


@pytest.mark.parametrize(
    ("hardness", "weighted"),
    # candidates are the positives of rows 0 and 1, then two negatives of row 0 and two of row 1
    [
        ("none", [[], []]),
        ("hard", [[2, 3], [4, 5]]),
        ("in_batch", [[1, 4, 5], [0, 2, 3]]),
        ("all", [[1, 2, 3, 4, 5], [0, 2, 3, 4, 5]]),
    ],
)
def test_hardness_adds_the_cosine_to_the_logits_of_those_negatives(
    hardness: Any, weighted: list[list[int]]
) -> None:
    negatives = torch.stack([at(20, 30), at(100, 200)])
    batch = rows(anchor=at(0, 90), positive=at(10, 120), negative=negatives)
    expected = 0.0
    for own, anchor in enumerate([0, 90]):
        cosines = [cos(anchor - angle) for angle in [10, 120, 20, 30, 100, 200]]
        logits = [5 * cosine + 3 * cosine * (c in weighted[own]) for c, cosine in enumerate(cosines)]
        expected += cross_entropy(logits, own) / 2
    found = in_batch_negatives(batch, scale=5.0, hardness=hardness, hardness_strength=3.0)
    assert found.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("negatives", [0, 1, 3])
@pytest.mark.parametrize("hardness", HARDNESS)
def test_hardness_equals_that_of_sentence_transformers(
    hardness: Any, negatives: int, similarity: Any
) -> None:
    ours = random_vectors(*shapes(negatives))
    if similarity == "dot":
        ours = [vectors.detach().mul(0.5).requires_grad_() for vectors in ours]
    theirs = copies(ours)
    scale = 5.0 if similarity == "cosine" else 1.0  # with 20, losses around 15 would be rounded to 1e-6
    batch = rows(**roles(ours))
    found = in_batch_negatives(
        batch, scale=scale, similarity=similarity, hardness=hardness, hardness_strength=3.0
    )
    reference = losses.MultipleNegativesRankingLoss(
        nn.Identity(),  # type: ignore[arg-type]
        scale=scale,
        similarity_fct=util.cos_sim if similarity == "cosine" else util.dot_score,
        hardness_mode=HARDNESS[hardness],  # type: ignore[arg-type]
        hardness_strength=3.0,
    )
    expected = reference.compute_loss_from_embeddings(columns(theirs), None)  # type: ignore[arg-type]
    plain = in_batch_negatives(batch, scale=scale, similarity=similarity)
    changes = hardness in ("in_batch", "all") or (hardness == "hard" and negatives > 0)
    assert (abs(found.item() - plain.item()) > 1e-3) == changes
    assert_same(found, ours, expected, theirs)


def test_in_the_symmetric_half_hardness_has_no_part() -> None:
    batch = rows(anchor=at(0, 90), positive=at(10, 120))
    exchanged = rows(anchor=at(10, 120), positive=at(0, 90))
    forward = in_batch_negatives(batch, scale=5.0, hardness="all")
    backward = in_batch_negatives(exchanged, scale=5.0)
    found = in_batch_negatives(batch, scale=5.0, hardness="all", symmetric=True)
    assert found.item() == pytest.approx((forward.item() + backward.item()) / 2, abs=1e-6)


class Stub(nn.Module):
    """Stands for a sentence-transformers model whose input holds its output; GISTEmbedLoss asks for a tokenizer."""

    max_seq_length = 8

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key, self.tokenizer = key, tokenizer()

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features[self.key]}


@cache
def tokenizer() -> Any:
    return make_encoder().tokenizer


@pytest.mark.parametrize(
    ("strategy", "margin"), [("absolute", 0.0), ("absolute", 0.1), ("relative", 0.4), ("relative", -0.4)]
)
@pytest.mark.parametrize("negatives", [0, 1])
@pytest.mark.parametrize("own_guide", [False, True])
def test_the_guide_equals_that_of_gist_embed_loss(
    own_guide: bool, negatives: int, strategy: Any, margin: float
) -> None:
    ours = random_vectors(*shapes(negatives))
    theirs = copies(ours)
    guide = [
        vectors.detach() for vectors in (ours if own_guide else random_vectors(*shapes(negatives), seed=3))
    ]
    batch = rows(None, {} if own_guide else roles(guide), **roles(ours))
    found = in_batch_negatives(batch, guide_margin=margin, margin_strategy=strategy)
    reference = losses.GISTEmbedLoss(
        Stub("model"),  # type: ignore[arg-type]
        Stub("guide"),  # type: ignore[arg-type]
        temperature=1 / 20,
        margin_strategy=strategy,
        margin=margin,
        contrast_anchors=False,
        contrast_positives=False,
    )
    features = [
        {"model": vectors, "guide": guided}
        for vectors, guided in zip(columns(theirs), columns(guide), strict=True)
    ]
    expected = reference(features, None)
    assert found.item() < in_batch_negatives(batch).item() - 1e-3, "some candidate must be left out"
    assert_same(found, ours, expected, theirs)


ANGLES = {"anchor": [0, 90, 200], "positive": [40, 110, 250], "negative": [30, 120, 210]}
GUIDE = {"anchor": [0, 50, 100], "positive": [30, 70, 140], "negative": [20, 35, 170]}


def guided(**options: Any) -> float:
    vectors = {role: at(*angles) for role, angles in ANGLES.items()}
    reference = {role: at(*angles) for role, angles in GUIDE.items()}
    for one in (vectors, reference):
        one["negative"] = one["negative"][:, None]
    return in_batch_negatives(rows(None, reference, **vectors), scale=5.0, **options).item()


def by_a_loop(role: str, candidates: Sequence[str], threshold: Any) -> tuple[float, int]:
    """The mean over queries, and the number of candidates that were left out."""
    found, left_out = 0.0, 0
    angles = [angle for name in candidates for angle in ANGLES[name]]
    guides = [angle for name in candidates for angle in GUIDE[name]]
    for i, (query, guide) in enumerate(zip(ANGLES[role], GUIDE[role], strict=True)):
        highest = threshold(cos(guide - guides[i]))
        kept = [c for c in range(len(angles)) if c == i or cos(guide - guides[c]) <= highest]
        left_out += len(angles) - len(kept)
        found += cross_entropy([5 * cos(query - angles[c]) for c in kept], kept.index(i)) / 3
    return found, left_out


@pytest.mark.parametrize(
    ("strategy", "margin", "threshold"),
    [
        ("absolute", 0.0, lambda own: own),
        ("absolute", 0.15, lambda own: own - 0.15),
        ("relative", 0.15, lambda own: own - abs(own) * 0.15),
    ],
)
def test_the_guide_leaves_out_those_nearer_than_the_positive(
    strategy: str, margin: float, threshold: Any
) -> None:
    forward, left_out = by_a_loop("anchor", ["positive", "negative"], threshold)
    assert 0 < left_out < 15
    found = guided(guide_margin=margin, margin_strategy=strategy)
    assert found == pytest.approx(forward, abs=1e-6)
    backward, left_out = by_a_loop("positive", ["anchor"], threshold)
    assert 0 < left_out < 6
    found = guided(guide_margin=margin, margin_strategy=strategy, symmetric=True)
    assert found == pytest.approx((forward + backward) / 2, abs=1e-6)


def test_without_a_margin_the_guide_has_no_say() -> None:
    vectors = {role: at(*angles) for role, angles in ANGLES.items() if role != "negative"}
    alone = in_batch_negatives(rows(**vectors)).item()
    reference = {role: at(*GUIDE[role]) for role in vectors}
    assert in_batch_negatives(rows(None, reference, **vectors)).item() == alone


def test_the_guide_and_equal_texts_leave_out_together() -> None:
    vectors = {role: at(*angles) for role, angles in ANGLES.items() if role != "negative"}
    batch = rows(**vectors)
    positive = torch.tensor([7, 8, 7])  # the first and the last are one text
    batch = RoleEmbeddings(batch.vectors, {**batch.text_keys, "positive": positive})
    found = in_batch_negatives(batch, scale=5.0, guide_margin=0.0)
    expected = cross_entropy([5 * cos(40), 5 * cos(110)], 0)
    # cos(90 - 40) is less than cos(90 - 110); so is cos(200 - 110) than cos(200 - 250)
    expected += cross_entropy([5 * cos(50), 5 * cos(20), 5 * cos(160)], 1)
    expected += cross_entropy([5 * cos(90), 5 * cos(50)], 1)
    assert found.item() == pytest.approx(expected / 3, abs=1e-6)


@pytest.mark.parametrize("options", [{"hardness": "all"}, {"guide_margin": 0.1}])
def test_identical_vectors_give_finite_gradients(options: dict[str, Any]) -> None:
    vectors = [at(0, 0, 0).requires_grad_(), at(0, 0, 0).requires_grad_()]
    batch = rows(anchor=vectors[0], positive=vectors[1])
    assert_finite_gradients(in_batch_negatives(batch, **options), vectors)


def test_a_batch_of_which_all_is_left_out_has_no_loss() -> None:
    batch = rows(anchor=at(0, 90), positive=at(10, 120))
    assert in_batch_negatives(batch, guide_margin=5.0, symmetric=True).item() == 0


def test_under_autocast_the_loss_is_that_of_float32() -> None:
    vectors, guide = random_vectors(*shapes(2)), random_vectors(*shapes(2), seed=3)
    reference = {role: guided.detach() for role, guided in roles(guide).items()}
    batch = rows(None, reference, **roles(vectors))
    assert_untouched_by_autocast(
        lambda: in_batch_negatives(batch, hardness="all", guide_margin=0.1, symmetric=True)
    )
