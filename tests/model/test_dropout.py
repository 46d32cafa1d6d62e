"""Dropout with cheap masks: the right share, independent elements, exact scale, replayed by torch's own state."""

import numpy as np
import pytest
import torch
from torch import nn

from sbert_train.model.dropout import STEPS, FastDropout, draw_kept, dropout, keep_scale, use_fast_dropout
from tests.tiny import make_backbone


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
def test_elements_are_dropped_with_the_given_probability_and_the_rest_scaled(p: float) -> None:
    torch.manual_seed(0)
    count = 400_000
    out = dropout(torch.ones(count), p)
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)], rel=1e-3)
    deviation = (p * (1 - p) / count) ** 0.5
    assert float((out == 0).double().mean()) == pytest.approx(p, abs=4 * deviation + 1 / STEPS)


def test_what_is_kept_is_scaled_by_the_probability_that_is_drawn() -> None:
    assert keep_scale(0.25) == 4 / 3
    assert keep_scale(0.1) != 1 / 0.9, "0.1 is no multiple of 1 / 65536"
    assert keep_scale(0.1) == pytest.approx(1 / 0.9, rel=1e-5)
    bits = torch.arange(STEPS) - STEPS // 2
    kept = bits >= round(0.1 * STEPS) - STEPS // 2
    assert float(kept.double().mean() * keep_scale(0.1)) == pytest.approx(1.0, abs=1e-12)


def test_elements_are_dropped_independently_of_their_neighbours_and_of_the_draw_before() -> None:
    torch.manual_seed(0)
    draws = np.stack([draw_kept(torch.Size([8]), 0.3).double().numpy() for _ in range(20_000)])
    both = np.concatenate([draws[:-1], draws[1:]], axis=1)
    correlation = np.corrcoef(both.T) - np.eye(16)
    assert np.abs(correlation).max() < 5 / len(draws) ** 0.5


def test_gradients_flow_where_elements_were_kept_with_the_same_scale() -> None:
    vectors = torch.randn(1_000, requires_grad=True)
    out = dropout(vectors, 0.25)
    out.backward(torch.full_like(out, 2.0))
    assert vectors.grad is not None
    expected = torch.where(out == 0, 0.0, torch.tensor(2 * 4 / 3))
    torch.testing.assert_close(vectors.grad, expected)
    assert 0 < int((out == 0).sum()) < 1_000


def test_torchs_own_state_repeats_and_moves_on_the_masks() -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = dropout(torch.ones(1_000), 0.5), dropout(torch.ones(1_000), 0.5)
    torch.set_rng_state(state)
    assert torch.equal(dropout(torch.ones(1_000), 0.5), first)
    assert not torch.equal(first, second)


def test_bfloat16_stays_bfloat16() -> None:
    out = dropout(torch.ones(4_096, dtype=torch.bfloat16), 0.1)
    assert out.dtype == torch.bfloat16
    assert set(out.float().unique().tolist()) == {0.0, float(torch.tensor(1 / 0.9).bfloat16())}


@pytest.mark.parametrize("p", [0.0, 1e-6, 1.0])
def test_probabilities_that_no_step_can_express_are_torchs_affair(p: float) -> None:
    out = dropout(torch.ones(1_000), p)
    torch.testing.assert_close(out, torch.full((1_000,), 0.0 if p == 1.0 else 1.0))


def test_without_training_nothing_is_dropped() -> None:
    vectors = torch.randn(10)
    assert dropout(vectors, 0.5, training=False) is vectors
    assert torch.equal(FastDropout(0.5).eval()(vectors), vectors)


def test_every_dropout_of_a_backbone_is_replaced_in_its_mode() -> None:
    backbone = make_backbone("bert").eval()
    before = {name: m.p for name, m in backbone.named_modules() if isinstance(m, nn.Dropout)}
    use_fast_dropout(backbone)
    after = {name: m for name, m in backbone.named_modules() if isinstance(m, nn.Dropout)}
    assert len(before) > 3 and {name: m.p for name, m in after.items()} == before
    assert all(type(m) is FastDropout and not m.training for m in after.values())
