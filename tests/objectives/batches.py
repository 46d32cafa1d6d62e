"""Batches of embeddings for the tests of objectives, and how a loss is compared with that of another library."""

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
from torch import Tensor

from sbert_train.objectives.embeddings import RoleEmbeddings


def at(*degrees: float) -> Tensor:
    """Unit vectors in the plane at these angles."""
    angles = torch.tensor([math.radians(angle) for angle in degrees])
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def rows(
    labels: Tensor | None = None, reference: Mapping[str, Tensor] | None = None, /, **vectors: Tensor
) -> RoleEmbeddings:
    """Rows of these vectors by role, whose texts are all different."""
    keys, start = {}, 0
    for role, vector in vectors.items():
        shape = vector.shape[:-1]
        keys[role] = torch.arange(start, start + shape.numel()).view(shape)
        start += shape.numel()
    return RoleEmbeddings(vectors, keys, labels, reference or {})


def random_vectors(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    """Vectors with gradients, of float64, so that 1e-6 is far above the rounding of what is compared with."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]


def copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same vectors with gradients of their own."""
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def assert_same(
    loss: Tensor, vectors: Sequence[Tensor], expected: Tensor, theirs: Sequence[Tensor], *, atol: float = 1e-6
) -> None:
    """Two losses are equal, and so are their gradients, which are not all 0."""
    assert loss.item() == pytest.approx(expected.item(), abs=atol)
    loss.backward()
    expected.backward()
    assert any(tensor.grad is not None and tensor.grad.abs().max() > 1e-3 for tensor in theirs)
    for a, b in zip(vectors, theirs, strict=True):
        assert a.grad is not None and b.grad is not None
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=atol)


def assert_finite_gradients(loss: Tensor, vectors: Sequence[Tensor]) -> None:
    assert loss.isfinite()
    loss.backward()
    for vector in vectors:
        assert vector.grad is not None and vector.grad.isfinite().all()


def assert_untouched_by_autocast(loss: Callable[[], Tensor]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        one = torch.ones(2, 2)
        assert (one @ one).dtype == torch.bfloat16, "autocast must be on for this test to mean anything"
        low = loss()
    assert low.dtype == torch.float32
    assert low.item() == loss().item()
