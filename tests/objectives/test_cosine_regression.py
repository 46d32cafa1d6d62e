"""Cosine regression against the formula worked by hand, and against sentence-transformers' loss."""

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from torch import nn

from sbert_train.objectives.cosine_regression import cosine_regression
from sbert_train.objectives.embeddings import RoleEmbeddings
from tests.objectives.batches import assert_untouched_by_autocast


def rows(one: torch.Tensor, two: torch.Tensor, scores: torch.Tensor) -> RoleEmbeddings:
    keys = torch.arange(len(one))
    return RoleEmbeddings(
        {"sentence1": one, "sentence2": two}, {"sentence1": keys, "sentence2": keys}, scores
    )


def test_the_loss_of_known_angles() -> None:
    one, two = torch.tensor([[1.0, 0.0], [2.0, 0.0]]), torch.tensor([[0.0, 3.0], [1.0, 1.0]])
    expected = ((0.0 - 0.25) ** 2 + (0.5**0.5 - 1.0) ** 2) / 2
    assert cosine_regression(rows(one, two, torch.tensor([0.25, 1.0]))).item() == pytest.approx(
        expected, abs=1e-6
    )


def test_values_and_gradients_equal_those_of_sentence_transformers() -> None:
    torch.manual_seed(0)
    ours = [torch.randn(6, 8, requires_grad=True) for _ in range(2)]
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    scores = torch.rand(6)
    loss = cosine_regression(rows(ours[0], ours[1], scores))
    expected = losses.CosineSimilarityLoss(nn.Identity()).compute_loss_from_embeddings(theirs, scores)  # type: ignore[arg-type]
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    loss.backward()
    expected.backward()
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad is not None and b.grad is not None and b.grad.abs().max() > 1e-3
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=1e-6)


def test_under_autocast_the_loss_is_that_of_float32() -> None:
    batch = rows(torch.randn(6, 8), torch.randn(6, 8), torch.rand(6))
    assert_untouched_by_autocast(lambda: cosine_regression(batch))
