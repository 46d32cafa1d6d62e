"""The gradient cache: micro-batches encoded twice give the gradient of the whole batch, with dropout on, too.

With dropout on, the same micro-batches with their graphs kept are the reference: both draw the same masks if, and only
if, the second forward replays what the first drew.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.model import gradient_cache
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.gradient_cache import micro_batches
from sbert_train.objectives import chunks
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import InBatchNegatives, in_batch_negatives
from sbert_train.objectives.matryoshka import Matryoshka
from tests.tiny import VOCABULARY, make_encoder

TOKENS = 40
OBJECTIVES: dict[str, Callable[[], Callable[[RoleEmbeddings], Tensor]]] = {
    "hard negatives": lambda: in_batch_negatives,
    "symmetric": lambda: lambda batch: in_batch_negatives(batch, symmetric=True, similarity="dot", scale=0.5),
    "guided": lambda: lambda batch: in_batch_negatives(batch, guide_margin=0.1, hardness="all"),
    "matryoshka": lambda: Matryoshka([in_batch_negatives, in_batch_negatives], [16, 8]),
    "learnt scale": lambda: InBatchNegatives(learnable_scale=True, scale=10.0),
}


@pytest.fixture
def batch() -> TextBatch:
    """Twelve rows with two hard negatives each; two rows share an anchor."""
    rng = np.random.default_rng(0)

    def text() -> np.ndarray:
        return rng.integers(4, len(VOCABULARY), size=rng.integers(3, 20)).astype(np.int32)

    rows = [{"anchor": text(), "positive": text(), "negative": [text(), text()]} for _ in range(12)]
    rows[-1]["anchor"] = rows[0]["anchor"]
    return collate(rows)


def gradients(
    encoder: SentenceEncoder,
    loss: Callable[[RoleEmbeddings], Tensor],
    batch: TextBatch,
    within: AbstractContextManager[Any] | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """The loss, and the gradients of the encoder's and the loss' weights; the same dropout each time."""
    torch.manual_seed(7)
    weights = [p for p in encoder.parameters() if p.requires_grad]
    weights += loss.parameters() if isinstance(loss, nn.Module) else []
    with within or nullcontext():
        value = loss(RoleEmbeddings.of(batch, encoder(batch)))
    found = torch.autograd.grad(value, weights, allow_unused=True)
    return value.detach(), [
        torch.zeros_like(w) if g is None else g for w, g in zip(weights, found, strict=True)
    ]


def keeping_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Micro-batches and chunks as they are, but none is computed twice."""

    def call(function: Callable[..., Tensor], *args: Any, **_: Any) -> Tensor:
        return function(*args)

    monkeypatch.setattr(gradient_cache, "checkpoint", call)
    monkeypatch.setattr(chunks, "checkpoint", call)


def assert_same(
    found: tuple[Tensor, list[Tensor]], expected: tuple[Tensor, list[Tensor]], tol: float
) -> None:
    torch.testing.assert_close(found[0], expected[0], rtol=1e-6, atol=tol)
    assert sum(float(g.norm()) > 1e-4 for g in expected[1]) > 10
    for a, b in zip(found[1], expected[1], strict=True):
        assert float((a - b).norm()) <= tol * (1 + float(b.norm()))


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("way", ["packed", "sorted"])
def test_cached_gradients_are_the_uncached_ones_with_dropout_on(
    name: str, way: str, batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PAIRS", 100)
    encoder = make_encoder(packing=way, gradient_cache=TOKENS).train()
    loss = OBJECTIVES[name]()
    cached = gradients(encoder, loss, batch)
    with monkeypatch.context() as patch:
        keeping_graphs(patch)
        uncached = gradients(encoder, loss, batch)
        without_replay = gradients(make_encoder(packing=way, gradient_cache=TOKENS).eval(), loss, batch)
    assert_same(cached, uncached, 1e-6)
    assert float(abs(without_replay[0] - cached[0])) > 1e-3, "dropout was on"


@pytest.mark.parametrize("name", OBJECTIVES)
def test_cached_gradients_are_those_of_the_whole_batch_without_dropout(
    name: str, batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = OBJECTIVES[name]()
    whole = gradients(make_encoder().eval(), loss, batch)
    monkeypatch.setattr(chunks, "PAIRS", 100)
    assert len(micro_batches(batch, TOKENS)) > 5
    cached = gradients(make_encoder(gradient_cache=TOKENS).eval(), loss, batch)
    assert_same(cached, whole, 1e-5)


def test_cached_gradients_under_bf16_autocast(batch: TextBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder(gradient_cache=TOKENS).train()
    cached = gradients(encoder, in_batch_negatives, batch, torch.autocast("cpu", torch.bfloat16))
    with monkeypatch.context() as patch:
        keeping_graphs(patch)
        uncached = gradients(encoder, in_batch_negatives, batch, torch.autocast("cpu", torch.bfloat16))
        exact = gradients(encoder, in_batch_negatives, batch)
    assert_same(cached, uncached, 1e-6)
    assert not torch.equal(cached[0], exact[0]), "bf16 was on"


def test_each_micro_batch_is_encoded_twice_and_alone(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    encoder = make_encoder(gradient_cache=TOKENS).train()
    inner = encoder._pool

    def count(piece: TextBatch) -> Tensor:
        seen.append(len(piece.input_ids))
        return inner(piece)

    monkeypatch.setattr(encoder, "_pool", count)
    gradients(encoder, in_batch_negatives, batch)
    once = [len(piece.input_ids) for piece in micro_batches(batch, TOKENS)]
    assert seen == once + once[::-1], "forward in order, then backward from the last"
    assert max(once) <= TOKENS < len(batch.input_ids)


def test_no_more_than_one_micro_batch_keeps_what_its_backward_needs(batch: TextBatch) -> None:
    """Bytes that autograd keeps from the forward pass, told by its own hooks."""

    def kept(tokens: int | None) -> int:
        encoder = make_encoder(gradient_cache=tokens).train()
        sizes = []

        def pack(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel() * tensor.element_size())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            encoder(batch)
        return sum(sizes)

    assert kept(TOKENS) < kept(None) / 100


def test_a_batch_that_fits_into_one_micro_batch_is_encoded_once(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_cache, "checkpoint", lambda *_, **__: pytest.fail("encoded twice"))
    encoder = make_encoder(gradient_cache=len(batch.input_ids)).train()
    assert gradients(encoder, in_batch_negatives, batch)[0].isfinite()


def test_micro_batches_hold_all_texts_in_order_within_the_budget(batch: TextBatch) -> None:
    pieces = micro_batches(batch, TOKENS)
    assert torch.equal(torch.cat([p.input_ids for p in pieces]), batch.input_ids)
    assert torch.equal(torch.cat([p.position_ids for p in pieces]), batch.position_ids)
    assert torch.equal(torch.cat([p.text_keys for p in pieces]), batch.text_keys)
    assert sum((p.lengths for p in pieces), ()) == batch.lengths
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        assert sum(piece.lengths) == len(piece.input_ids) <= TOKENS
        assert following is None or len(piece.input_ids) + following.lengths[0] > TOKENS, "as full as can be"


def test_a_text_over_the_budget_is_a_micro_batch_of_its_own(batch: TextBatch) -> None:
    pieces = micro_batches(batch, 10)
    assert all(len(p.lengths) == 1 for p in pieces if len(p.input_ids) > 10)
    assert sum(len(p.lengths) for p in pieces) == len(batch.lengths)
