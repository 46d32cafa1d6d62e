"""In-batch negatives in chunks of rows: the same loss and gradients, and never all pairs at once."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sbert_train.objectives import chunks
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import InBatchNegatives, in_batch_negatives
from tests.objectives.batches import copies, random_vectors, rows
from tests.objectives.test_gathering import OPTIONS

B, K, D = 7, 2, 5


def make_batch(vectors: list[Tensor]) -> RoleEmbeddings:
    reference = {
        role: tensor.detach().flip(-1)
        for role, tensor in zip(("anchor", "positive", "negative"), vectors, strict=True)
    }
    return rows(None, reference, **dict(zip(("anchor", "positive", "negative"), vectors, strict=True)))


@pytest.mark.parametrize("name", [*OPTIONS, "learnt scale"])
def test_chunks_of_rows_give_the_same_loss_and_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random_vectors((B, D), (B, D), (B, K, D))
    others = copies(vectors)
    learnt = [InBatchNegatives(learnable_scale=True) for _ in range(2)]
    losses = learnt if name == "learnt scale" else [lambda b: in_batch_negatives(b, **OPTIONS[name])] * 2  # type: ignore[arg-type]

    whole = losses[0](make_batch(vectors))
    calls = []

    def spy(*args: Any, **options: Any) -> Any:
        calls.append(len(args[2]))
        return checkpoint(*args, **options)

    monkeypatch.setattr(chunks, "checkpoint", spy)
    monkeypatch.setattr(chunks, "PAIRS", 3 * B * (1 + K))
    in_parts = losses[1](make_batch(others))
    assert calls[:3] == [3, 3, 1], "in chunks of three rows"

    torch.testing.assert_close(in_parts, whole)
    whole.backward()
    in_parts.backward()
    for a, b in zip(vectors, others, strict=True):
        assert a.grad is not None and b.grad is not None
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-5, atol=1e-6)
    if name == "learnt scale":
        torch.testing.assert_close(learnt[1].log_scale.grad, learnt[0].log_scale.grad, rtol=1e-5, atol=1e-6)  # type: ignore[union-attr]


def test_no_matrix_of_all_pairs_is_kept_for_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    def largest(pairs: int) -> int:
        monkeypatch.setattr(chunks, "PAIRS", pairs)
        sizes = []

        def pack(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            in_batch_negatives(make_batch(random_vectors((64, D), (64, D), (64, K, D))))
        return max(sizes)

    assert largest(10**6) >= 64 * 64 * (1 + K)
    assert largest(2_000) <= 64 * (1 + K) * D
