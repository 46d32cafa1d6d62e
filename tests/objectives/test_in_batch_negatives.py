"""In-batch negatives against the formula worked by a plain loop, and against sentence-transformers' loss."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from sentence_transformers import util
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import InBatchNegatives, in_batch_negatives

B, D = 6, 8


def at(*degrees: float) -> Tensor:
    """Unit vectors in the plane at these angles."""
    angles = torch.tensor([math.radians(angle) for angle in degrees])
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def rows(
    anchor: Tensor, positive: Tensor, negative: Tensor | None = None, /, **keys: list[Any]
) -> RoleEmbeddings:
    """Rows whose texts are all different unless keys say otherwise."""
    vectors = {"anchor": anchor, "positive": positive} | ({} if negative is None else {"negative": negative})
    counts = {role: vector.shape[:-1] for role, vector in vectors.items()}
    text_keys, start = {}, 0
    for role, shape in counts.items():
        text_keys[role] = torch.arange(start, start + shape.numel()).view(shape)
        start += shape.numel()
    for role, given in keys.items():
        text_keys[role] = torch.tensor(given)
    return RoleEmbeddings(vectors, text_keys)


def cross_entropy(logits: list[float], own: int) -> float:
    return math.log(sum(math.exp(logit) for logit in logits)) - logits[own]


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def test_the_loss_of_known_angles() -> None:
    batch = rows(at(0, 90), at(10, 120))
    expected = (
        cross_entropy([5 * cos(10), 5 * cos(120)], 0) + cross_entropy([5 * cos(80), 5 * cos(30)], 1)
    ) / 2
    assert in_batch_negatives(batch, scale=5.0).item() == pytest.approx(expected, abs=1e-6)


def test_hard_negatives_of_every_row_are_candidates_for_every_anchor() -> None:
    negatives = torch.stack([at(20, 30), at(100, 200)])  # two for each of two rows
    batch = rows(at(0, 90), at(10, 120), negatives)
    angles = [10, 120, 20, 30, 100, 200]
    expected = sum(
        cross_entropy([5 * cos(anchor - angle) for angle in angles], own)
        for own, anchor in enumerate([0, 90])
    )
    assert in_batch_negatives(batch, scale=5.0).item() == pytest.approx(expected / 2, abs=1e-6)


def test_the_symmetric_loss_is_the_mean_of_both_directions() -> None:
    forward = in_batch_negatives(rows(at(0, 90), at(10, 120)), scale=5.0)
    backward = in_batch_negatives(rows(at(10, 120), at(0, 90)), scale=5.0)
    assert forward.item() != pytest.approx(backward.item())
    both = in_batch_negatives(rows(at(0, 90), at(10, 120)), scale=5.0, symmetric=True)
    assert both.item() == pytest.approx((forward.item() + backward.item()) / 2, abs=1e-6)


def test_cosine_ignores_lengths_and_dot_product_does_not() -> None:
    long, short = rows(at(0, 90) * 3, at(10, 120)), rows(at(0, 90), at(10, 120))
    assert in_batch_negatives(long).item() == pytest.approx(in_batch_negatives(short).item(), abs=1e-6)
    dot = in_batch_negatives(long, similarity="dot", scale=1.0)
    assert dot.item() == pytest.approx(in_batch_negatives(short, scale=3.0).item(), abs=1e-6)


def loss_without(
    batch: RoleEmbeddings, anchor: int, left_out: list[int], angles: Sequence[float], at_: float
) -> float:
    logits = [5 * cos(at_ - angle) for i, angle in enumerate(angles) if i not in left_out]
    own = [i for i in range(len(angles)) if i not in left_out].index(anchor)
    return cross_entropy(logits, own)


def test_a_candidate_with_the_text_of_the_positive_is_no_negative() -> None:
    batch = rows(at(0, 90, 200), at(10, 10, 210), positive=[7, 7, 8])
    angles = [10, 10, 210]
    expected = (
        loss_without(batch, 0, [1], angles, 0)
        + loss_without(batch, 1, [0], angles, 90)
        + loss_without(batch, 2, [], angles, 200)
    ) / 3
    assert in_batch_negatives(batch, scale=5.0).item() == pytest.approx(expected, abs=1e-6)
    assert in_batch_negatives(batch, scale=5.0, mask_identical=False).item() != pytest.approx(
        expected, abs=1e-3
    )


def test_the_positive_of_an_identical_anchor_is_no_negative() -> None:
    batch = rows(at(0, 0, 200), at(10, 30, 210), anchor=[0, 0, 1])
    angles = [10, 30, 210]
    expected = (
        loss_without(batch, 0, [1], angles, 0)
        + loss_without(batch, 1, [0], angles, 0)
        + loss_without(batch, 2, [], angles, 200)
    ) / 3
    assert in_batch_negatives(batch, scale=5.0).item() == pytest.approx(expected, abs=1e-6)


def test_a_candidate_with_the_text_of_the_anchor_is_no_negative() -> None:
    batch = rows(at(0, 90), at(10, 0), anchor=[0, 1], positive=[2, 0])
    expected = (loss_without(batch, 0, [1], [10, 0], 0) + loss_without(batch, 1, [], [10, 0], 90)) / 2
    assert in_batch_negatives(batch, scale=5.0).item() == pytest.approx(expected, abs=1e-6)


def test_a_hard_negative_with_the_text_of_a_positive_is_left_out_for_that_anchor_alone() -> None:
    batch = rows(at(0, 90), at(10, 120), at(10, 50)[:, None], positive=[5, 6], negative=[[9], [5]])
    angles = [10, 120, 10, 50]
    expected = (loss_without(batch, 0, [3], angles, 0) + loss_without(batch, 1, [], angles, 90)) / 2
    assert in_batch_negatives(batch, scale=5.0).item() == pytest.approx(expected, abs=1e-6)


def test_the_positive_itself_is_never_masked() -> None:
    batch = rows(at(0, 90), at(0, 90), anchor=[0, 1], positive=[0, 1])
    assert torch.isfinite(in_batch_negatives(batch))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("negatives", [0, 1, 3])
@pytest.mark.parametrize("symmetric", [False, True])
def test_values_and_gradients_equal_those_of_sentence_transformers(
    similarity: str, negatives: int, symmetric: bool
) -> None:
    torch.manual_seed(0)
    # float64, so that 1e-6 is far above rounding
    shapes = [(B, D), (B, D)] + ([(B, negatives, D)] if negatives else [])
    ours = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    loss = in_batch_negatives(
        rows(*ours),
        scale=20.0 if similarity == "cosine" else 1.0,
        similarity=similarity,  # type: ignore[arg-type]
        symmetric=symmetric,
    )
    reference = losses.MultipleNegativesRankingLoss(
        nn.Identity(),  # type: ignore[arg-type]
        scale=20.0 if similarity == "cosine" else 1.0,
        similarity_fct=util.cos_sim if similarity == "cosine" else util.dot_score,
        directions=("query_to_doc", "doc_to_query") if symmetric else ("query_to_doc",),
        partition_mode="per_direction" if symmetric else "joint",
    )
    columns = theirs[:2] + [theirs[2][:, k] for k in range(negatives)]
    expected = reference.compute_loss_from_embeddings(columns, None)  # type: ignore[arg-type]
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    loss.backward()
    expected.backward()
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad is not None and b.grad is not None and b.grad.abs().max() > 1e-3
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=1e-6)


def test_under_autocast_the_loss_is_that_of_float32() -> None:
    torch.manual_seed(0)
    batch = rows(torch.randn(B, D), torch.randn(B, D))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = in_batch_negatives(batch)
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(in_batch_negatives(batch).item(), abs=1e-6)


def test_the_module_is_the_function_with_its_options() -> None:
    batch = rows(at(0, 90), at(10, 120))
    loss = InBatchNegatives(scale=5.0, symmetric=True, hardness="in_batch")
    assert list(loss.parameters()) == []
    assert torch.equal(loss(batch), in_batch_negatives(batch, scale=5.0, symmetric=True, hardness="in_batch"))
    assert torch.equal(InBatchNegatives()(batch), in_batch_negatives(batch))


def test_a_learnt_scale_starts_where_it_is_told_and_learns() -> None:
    batch = rows(at(0, 90), at(10, 120))
    loss = InBatchNegatives(scale=5.0, learnable_scale=True)
    (parameter,) = loss.parameters()
    found = loss(batch)
    assert found.item() == pytest.approx(in_batch_negatives(batch, scale=5.0).item(), abs=1e-6)
    found.backward()
    higher, lower = (in_batch_negatives(batch, scale=5.0 * math.exp(step)).item() for step in (1e-2, -1e-2))
    assert parameter.grad is not None
    # each anchor is nearest to its own positive, so that a higher scale is a lower loss
    assert parameter.grad.item() == pytest.approx((higher - lower) / 2e-2, abs=1e-4)
    assert parameter.grad.item() < -1e-3


def test_a_learnt_scale_stays_up_to_100_and_can_come_down_again() -> None:
    wrong = rows(at(0, 90), at(70, 20))  # each anchor is nearer to the other's positive
    loss = InBatchNegatives(scale=99.0, learnable_scale=True)
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.02)
    assert isinstance(loss.log_scale, torch.nn.Parameter)
    with torch.no_grad():
        loss.log_scale.add_(1.0)  # as a step too long would
    assert loss.current_scale().item() == pytest.approx(100.0, abs=1e-3)  # type: ignore[union-attr]
    loss(wrong).backward()
    optimizer.step()
    assert 1.0 < loss.current_scale().item() < 50.0  # type: ignore[union-attr]
