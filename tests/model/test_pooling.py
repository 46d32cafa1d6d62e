"""Poolings, over packed and padded tokens, against plain loops and against sentence-transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling

from sbert_train.model.layout import POOLING_NAMES
from sbert_train.model.pooling import POOLINGS, pool_packed, pool_padded

LENGTHS = (1, 3, 3, 7)


def by_hand(text: np.ndarray, pooling: str) -> np.ndarray:
    length = len(text)
    places = np.arange(1, length + 1)[:, None]
    pooled: dict[str, np.ndarray] = {
        "mean": text.sum(0) / length,
        "cls": text[0],
        "max": text.max(0),
        "mean_sqrt_len": text.sum(0) / np.sqrt(length),
        "weighted_mean": (text * places).sum(0) / places.sum(),
        "last": text[-1],
    }
    return pooled[pooling]


@pytest.fixture
def texts() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(length, 5) - 3 for length in LENGTHS
    ]  # mostly negative: padding by zeros would win a maximum


@pytest.fixture
def padded(texts: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    mask = (torch.arange(7) < torch.tensor(LENGTHS)[:, None]).long()
    tokens = torch.full((4, 7, 5), 1e6)  # what stands in padded places must not matter
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = text
    return tokens, mask


@pytest.mark.parametrize("pooling", POOLINGS)
def test_packed_pooling_equals_a_plain_loop(texts: list[torch.Tensor], pooling: str) -> None:
    found = pool_packed(torch.cat(texts), LENGTHS, pooling)
    expected = np.stack([by_hand(text.numpy(), pooling) for text in texts])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padded_pooling_equals_packed_in_values_and_gradients(
    texts: list[torch.Tensor], padded: tuple[torch.Tensor, torch.Tensor], pooling: str
) -> None:
    packed_tokens = torch.cat(texts).requires_grad_()
    padded_tokens = padded[0].clone().requires_grad_()
    one, other = pool_packed(packed_tokens, LENGTHS, pooling), pool_padded(padded_tokens, padded[1], pooling)
    torch.testing.assert_close(one, other)
    weights = torch.randn_like(one)
    (one * weights).sum().backward()
    (other * weights).sum().backward()
    assert packed_tokens.grad is not None and padded_tokens.grad is not None
    torch.testing.assert_close(packed_tokens.grad, padded_tokens.grad[padded[1].bool()])
    assert padded_tokens.grad[~padded[1].bool()].abs().max() == 0


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_equals_that_of_sentence_transformers(
    padded: tuple[torch.Tensor, torch.Tensor], pooling: str
) -> None:
    tokens, mask = padded
    theirs = Pooling(5, pooling_mode=POOLING_NAMES[pooling][1])
    expected = theirs({"token_embeddings": tokens, "attention_mask": mask})["sentence_embedding"]
    torch.testing.assert_close(pool_padded(tokens, mask, pooling), expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_of_half_precision_tokens_is_float32(pooling: str) -> None:
    tokens = torch.randn(6, 5, dtype=torch.bfloat16)
    assert pool_packed(tokens, (2, 4), pooling).dtype == torch.float32
    assert pool_padded(tokens[None], torch.ones(1, 6), pooling).dtype == torch.float32
