"""The packed forward: equal to the padded one, text by text, in values and gradients."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from sbert_train.data.batch import TextBatch, pack
from sbert_train.model import cpu_attention, packing, pooling
from sbert_train.model.attention import PACKED, NotPackable, attention_dropout, packed_attention
from sbert_train.model.packed_layout import PackedLayout, group_by_width
from sbert_train.model.packing import choose_way, padding_saved, pooled, set_attention
from tests.tiny import ARCHITECTURES, VOCABULARY, make_backbone, make_encoder

LENGTHS = (1, 2, 3, 8, 8, 8, 9, 15, 23, 24, 40)
PACKABLE = [name for name in ARCHITECTURES if name != "mpnet"]


@pytest.fixture
def batch() -> TextBatch:
    rng = np.random.default_rng(0)
    return pack([rng.integers(4, len(VOCABULARY), size=n).astype(np.int32) for n in LENGTHS])[0]


def run(backbone: PreTrainedModel, batch: TextBatch, way: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Vectors, and the gradients of all parameters of a fixed scalar of them."""
    set_attention(backbone, way, "sdpa" if backbone.config.model_type != "mpnet" else "eager")
    backbone.zero_grad()
    vectors = pooled(backbone, batch, "mean", way, pad_id=0)
    torch.manual_seed(1)
    (vectors * torch.randn_like(vectors)).sum().backward()
    gradients = [p.grad.clone() for name, p in backbone.named_parameters() if p.grad is not None]
    return vectors.detach(), gradients


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("way", ["packed", "sorted", "padded"])
def test_each_way_equals_one_text_at_a_time(architecture: str, way: str, batch: TextBatch) -> None:
    if way == "packed" and architecture not in PACKABLE:
        pytest.skip("MPNet's attention has position biases of its own and does not go through the interface")
    backbone = make_backbone(architecture).eval()
    found, gradients = run(backbone, batch, way)
    texts = batch.input_ids.split(list(batch.lengths))
    alone = [
        replace(batch, input_ids=text, position_ids=torch.arange(len(text)), lengths=(len(text),))
        for text in texts
    ]
    set_attention(backbone, "padded", "sdpa" if architecture != "mpnet" else "eager")
    backbone.zero_grad()
    expected = torch.cat([pooled(backbone, one, "mean", "padded", pad_id=0) for one in alone])
    torch.manual_seed(1)
    (expected * torch.randn_like(expected)).sum().backward()
    assert (found - expected).norm() / expected.norm() < 1e-5
    expected_gradients = [p.grad for p in backbone.parameters() if p.grad is not None]
    assert len(gradients) == len(expected_gradients) > 10
    for a, b in zip(gradients, expected_gradients, strict=True):
        assert (a - b).norm() <= 2e-5 * b.norm() + 1e-5


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_auto_packs_what_can_be_packed_and_says_why_not(architecture: str, batch: TextBatch) -> None:
    backbone = make_backbone(architecture).train()
    before = backbone.config._attn_implementation
    way, why = choose_way(backbone, batch, pad_id=0)
    assert (way == "packed") == (architecture in PACKABLE)
    assert "agree" in why if way == "packed" else "MPNetModel cannot run packed" in why
    assert backbone.training and backbone.config._attn_implementation == before
    assert all(p.grad is None for p in backbone.parameters())


def test_what_cannot_be_packed_is_refused_when_packed_is_asked_for(batch: TextBatch) -> None:
    with pytest.raises(NotPackable, match="differ"):
        choose_way(make_backbone("mpnet"), batch, pad_id=0, requested="packed")


def test_attention_with_dropout_that_differs_from_that_without_is_noticed(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = make_backbone("bert")
    assert attention_dropout(backbone) > 0 and choose_way(backbone, batch, pad_id=0)[0] == "packed"
    right = cpu_attention.attend_with_dropout
    monkeypatch.setattr(
        packing, "attend_with_dropout", lambda *args, **options: right(*args, **options) * 1.01
    )
    way, why = choose_way(backbone, batch, pad_id=0)
    assert way == "sorted" and "attention with dropout differs" in why


def test_values_alone_are_compared_without_a_backward(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_backward(*_: object, **__: object) -> None:
        raise AssertionError("gradients were asked for")

    monkeypatch.setattr(torch.autograd, "grad", no_backward)
    way, why = choose_way(make_backbone("bert"), batch, pad_id=0, gradients=False)
    assert way == "packed" and "agree in values on" in why
    with pytest.raises(AssertionError, match="gradients were asked for"):
        choose_way(make_backbone("bert"), batch, pad_id=0)


def test_a_gradient_that_differs_is_noticed_in_training_only(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, vectors: torch.Tensor) -> torch.Tensor:
            return vectors.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return 2 * gradient

    right = pooling.pool_packed
    monkeypatch.setattr(packing, "pool_packed", lambda *args: Doubled.apply(right(*args)))  # type: ignore[no-untyped-call]
    assert choose_way(make_backbone("bert"), batch, pad_id=0, gradients=False)[0] == "packed"
    assert "gradients differ by 1.0e+00" in choose_way(make_backbone("bert"), batch, pad_id=0)[1]


def test_a_wrong_position_is_noticed(batch: TextBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "first_position", lambda backbone: 1)
    assert "values differ" in (packing.why_not_packable(make_backbone("bert"), batch, pad_id=0) or "")


def test_roberta_counts_positions_from_behind_the_padding_index() -> None:
    assert packing.first_position(make_backbone("roberta")) == 1
    assert packing.first_position(make_backbone("bert")) == 0


def test_packed_equals_padded_under_gradient_checkpointing(batch: TextBatch) -> None:
    backbone = make_backbone("bert").eval()
    vectors, gradients = run(backbone, batch, "packed")
    checkpointed = make_backbone("bert")
    checkpointed.activation_checkpointing_enable()
    checkpointed.train()
    for module in checkpointed.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert checkpointed.is_activation_checkpointing
    found, found_gradients = run(checkpointed, batch, "packed")
    torch.testing.assert_close(found, vectors)
    for a, b in zip(found_gradients, gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_buckets_hold_texts_of_nearly_equal_length() -> None:
    assert group_by_width(LENGTHS) == [(0, 6), (6, 8), (8, 10), (10, 11)]
    buckets = PackedLayout(LENGTHS, "cpu").buckets
    assert [bucket.texts for bucket in buckets] == [6, 2, 2, 1]
    assert [bucket.width for bucket in buckets] == [8, 15, 24, 40]
    assert sum(bucket.tokens for bucket in buckets) == sum(LENGTHS)
    assert buckets[-1].gather is None, "texts of one length are a view"


def kept_weights(width: int, texts: int, dropout: float) -> torch.Tensor:
    """(texts, width, width): the attention weights of equal tokens after dropout.

    Equal keys give equal weights 1/width, and with the identity as values an output is its row of weights.
    """
    torch.manual_seed(0)
    query = torch.zeros(1, 1, texts * width, 2)
    value = torch.eye(width).repeat(texts, 1)[None, None]
    layout = PackedLayout([width] * texts, "cpu")
    output, _ = packed_attention(
        torch.nn.Module(), query, query, value, None, dropout=dropout, packed_layout=layout
    )
    return output.view(texts, width, width)


def test_without_dropout_no_weight_is_dropped() -> None:
    torch.testing.assert_close(kept_weights(4, 3, 0.0), torch.full((3, 4, 4), 0.25))


def test_attention_dropout_drops_each_weight_on_its_own_and_scales_the_rest() -> None:
    width, p = 4, 0.25
    weights = kept_weights(width, 4_000, p)
    assert weights.unique().tolist() == pytest.approx([0.0, 1 / width / (1 - p)])
    kept = (weights > 0).float().flatten(1)
    assert kept.mean(0).numpy() == pytest.approx(np.full(width * width, 1 - p), abs=0.03)
    assert (torch.corrcoef(kept.T) - torch.eye(width * width)).abs().max() < 0.07


def test_a_causal_or_masked_or_deaf_architecture_is_not_packable() -> None:
    q = torch.randn(1, 2, 3, 4)
    layout = PackedLayout((3,), "cpu")
    module = torch.nn.Module()
    with pytest.raises(NotPackable, match="do not pass"):
        packed_attention(module, q, q, q, None)
    with pytest.raises(NotPackable, match="mask of its own"):
        packed_attention(module, q, q, q, torch.zeros(1), packed_layout=layout)
    with pytest.raises(NotPackable, match="causal"):
        packed_attention(module, q, q, q, None, packed_layout=layout, is_causal=True)
    with pytest.raises(NotPackable, match="numbers of heads"):
        packed_attention(module, q, q[:, :1], q[:, :1], None, packed_layout=layout)


def test_no_sub_batch_is_over_the_token_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "TOKEN_BUDGET", 20)
    ranges = packing._sub_batches(LENGTHS)
    assert [i for a, b in ranges for i in range(a, b)] == list(range(len(LENGTHS)))
    assert all((b - a) * LENGTHS[b - 1] <= 20 or b - a == 1 for a, b in ranges)


def test_padding_saved_counts_each_role_padded_to_its_longest_text(batch: TextBatch) -> None:
    rows = replace(batch, index={"anchor": torch.tensor([0, 10]), "positive": torch.tensor([3, 4])})
    assert padding_saved(rows) == pytest.approx(1 - (1 + 40 + 8 + 8) / (2 * 40 + 2 * 8))


def test_the_packed_function_is_known_to_transformers() -> None:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    assert PACKED in ALL_ATTENTION_FUNCTIONS and PACKED in ALL_MASK_ATTENTION_FUNCTIONS


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("the device is full"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: 8 bytes"
        ),
    ],
)
def test_a_lack_of_memory_is_not_taken_for_an_architecture_that_cannot(
    error: RuntimeError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise error

    encoder = make_encoder()
    monkeypatch.setattr("sbert_train.model.packing.pooled", no_memory)
    with pytest.raises(type(error), match=r"the device is full|can't allocate memory"):
        encoder.choose_way(packing.probe_batch(encoder.backbone, (), 64), "auto")
