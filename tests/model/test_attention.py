"""Attention over a packed row: each way equals softmax(q k^T s) v of one text at a time, in values and gradients."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sbert_train.model import attention, cpu_attention, flash_attention
from sbert_train.model.bucket_attention import in_buckets
from sbert_train.model.cpu_attention import attend_with_dropout
from sbert_train.model.dropout import STEPS, keep_scale
from sbert_train.model.packed_layout import PackedLayout

LENGTHS = (1, 2, 5, 8, 9, 15, 16, 16, 21)
T, H, C = sum(LENGTHS), 3, 4
SCALING = 0.7
P = 0.25


@pytest.fixture
def tensors() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(T, H, C, generator=generator, dtype=torch.float64) for _ in range(4)]


def one_by_one(q: Tensor, k: Tensor, v: Tensor, window: int | None = None) -> Tensor:
    """The formula, text by text."""
    parts = []
    for a, b, c in zip(*(tensor.split(LENGTHS) for tensor in (q, k, v)), strict=True):
        scores = torch.einsum("ihc,jhc->hij", a, b) * SCALING
        if window is not None:
            places = torch.arange(len(a))
            scores = scores.masked_fill((places[:, None] - places).abs() >= window, -torch.inf)
        parts.append(torch.einsum("hij,jhc->ihc", scores.softmax(-1), c))
    return torch.cat(parts)


def values_and_gradients(attend: Any, tensors: list[Tensor], *args: Any, **options: Any) -> list[Tensor]:
    *inputs, weights = tensors
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    out = attend(*inputs, *args, **options)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), inputs)]


def keep_all(shape: torch.Size, p: float) -> Tensor:
    return torch.ones(shape, dtype=torch.bool)


@pytest.mark.parametrize("window", [None, 4])
def test_buckets_equal_the_formula(tensors: list[Tensor], window: int | None) -> None:
    layout = PackedLayout(LENGTHS, "cpu")
    assert len(layout.buckets) == 3 and any(b.mask is not None for b in layout.buckets)
    found = values_and_gradients(in_buckets, tensors, layout, scaling=SCALING, sliding_window=window)
    expected = values_and_gradients(one_by_one, tensors, window)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("window", [None, 4])
def test_by_hand_equals_the_formula_where_nothing_happens_to_be_dropped(
    tensors: list[Tensor], window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_attention, "draw_kept", keep_all)
    options = {"scaling": SCALING, "dropout": P, "sliding_window": window}
    found = values_and_gradients(attend_with_dropout, tensors, PackedLayout(LENGTHS, "cpu"), **options)
    expected = values_and_gradients(one_by_one, tensors, window)
    for a, b in zip(found, expected, strict=True):  # all are linear in the scale of what is kept
        torch.testing.assert_close(a, b * keep_scale(P))


def test_the_gradients_by_hand_are_those_of_finite_differences(
    tensors: list[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Tensor] = []

    def same_each_time(shape: torch.Size, p: float) -> Tensor:
        kept.append(torch.rand(shape, generator=torch.Generator().manual_seed(5)) >= p)
        return kept[-1]

    monkeypatch.setattr(cpu_attention, "draw_kept", same_each_time)
    layout = PackedLayout((2, 3, 3, 9), "cpu")
    inputs = [tensor[:17].clone().requires_grad_() for tensor in tensors[:3]]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend_with_dropout(q, k, v, layout, scaling=SCALING, dropout=P)

    assert torch.autograd.gradcheck(attend, inputs)
    assert 0.1 < float((~kept[0]).double().mean()) < 0.4, "some weights were dropped"


def test_by_hand_with_wide_values(tensors: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_attention, "draw_kept", keep_all)
    q, k, v, weights = tensors
    wide = [q, k, torch.cat([v, -2 * v], dim=-1), torch.cat([weights, weights], dim=-1)]
    layout = PackedLayout(LENGTHS, "cpu")
    found = values_and_gradients(attend_with_dropout, wide, layout, scaling=SCALING, dropout=P)
    expected = values_and_gradients(one_by_one, wide)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b * keep_scale(P))


def test_the_interface_takes_the_way_by_hand_only_where_something_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def spy(*args: Any, **options: Any) -> Tensor:
        calls.append(options["dropout"])
        return attend_with_dropout(*args, **options)

    monkeypatch.setattr(attention, "attend_with_dropout", spy)
    q = torch.randn(1, H, T, C)
    layout = PackedLayout(LENGTHS, "cpu")
    for dropout in (0.0, 0.1, 1 / STEPS / 4):
        out, _ = attention.packed_attention(
            torch.nn.Module(), q, q, q, None, dropout=dropout, packed_layout=layout
        )
        assert out.shape == (1, T, H, C)
    assert calls == [0.1]


def test_under_autocast_attention_on_a_cpu_is_in_float32() -> None:
    q = torch.randn(1, H, T, C, dtype=torch.bfloat16)
    layout = PackedLayout(LENGTHS, "cpu")
    with torch.autocast("cpu", torch.bfloat16):
        out, _ = attention.packed_attention(torch.nn.Module(), q, q, q, None, packed_layout=layout)
    exact, _ = attention.packed_attention(
        torch.nn.Module(), q.float(), q.float(), q.float(), None, packed_layout=layout
    )
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out, exact.bfloat16(), rtol=0, atol=0)


CPU = torch.device("cpu")


def stand_in(out_of: float = 1.0, drops: bool = True, windows: bool = True) -> Any:
    """A kernel for the CPU in place of the GPU's, right or wrong."""

    def attend(q: Tensor, k: Tensor, v: Tensor, layout: PackedLayout, *, scaling: float, dropout: float = 0.0,
               sliding_window: int | None = None) -> Tensor:  # fmt: skip
        options = {
            "dropout": dropout if drops else 0.0,
            "sliding_window": sliding_window if windows else None,
        }
        return in_buckets(q, k, v, layout, scaling=scaling, **options) * out_of  # type: ignore[arg-type]

    return attend


@pytest.mark.parametrize(
    ("kernel", "problem"),
    [
        (stand_in(), None),
        (stand_in(out_of=1.2), "its result differs by 2.0e-01"),
        (stand_in(windows=False), "its result differs by"),
        (stand_in(drops=False), "its dropout is none"),
    ],
)
def test_a_gpu_kernel_is_tried_before_it_is_used(
    kernel: Any, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash_attention, "flash_attention", kernel)
    flash_attention.why_not.cache_clear()
    found = flash_attention.why_not(CPU, torch.bfloat16)
    flash_attention.why_not.cache_clear()
    assert (found is None) == (problem is None) and (problem or "") in (found or "")


def test_a_gpu_kernel_that_fails_is_not_used_and_the_random_state_stays() -> None:
    flash_attention.why_not.cache_clear()
    state = torch.get_rng_state()
    found = flash_attention.why_not(CPU, torch.bfloat16)  # varlen_attn has no kernel for the CPU
    flash_attention.why_not.cache_clear()
    assert found is not None and found.startswith("it fails (")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_gpus_own_kernel_works(dropout: float) -> None:
    assert flash_attention.why_not(torch.device("cuda"), torch.bfloat16) is None
    said = attention.describe_attention(torch.device("cuda"), torch.bfloat16, dropout, 64)
    assert said == flash_attention.kernel_name(dropout)


@pytest.mark.parametrize(
    ("dtype", "channels", "fits"),
    [(torch.bfloat16, 64, True), (torch.float16, 32, True), (torch.float32, 64, False),
     (torch.bfloat16, 12, False), (torch.bfloat16, 512, False)],
)  # fmt: skip
def test_flash_attention_takes_half_precision_and_heads_of_its_sizes(
    dtype: torch.dtype, channels: int, fits: bool
) -> None:
    assert flash_attention.fits(torch.zeros(1, 1, channels, dtype=dtype)) is fits


def test_what_a_packed_row_meets_is_told_in_words() -> None:
    assert attention.describe_attention(CPU, torch.float32, 0.1, 12) == "our own, with fast dropout"
    assert attention.describe_attention(CPU, torch.float32, 0.0, 12) == "scaled_dot_product_attention"
    on_gpu = attention.describe_attention(torch.device("cuda"), torch.bfloat16, 0.1, 12)
    assert on_gpu == "scaled_dot_product_attention, as flash attention takes no heads of 12 channels"


def test_a_flash_package_that_cannot_be_imported_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "flash_attn.py"
    package.write_text("raise ImportError('undefined symbol')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for text, expected in ((package.read_text(), False), ("", True)):
        package.write_text(text)
        importlib.invalidate_caches()
        flash_attention.has_package.cache_clear()
        assert flash_attention.has_package() is expected
    monkeypatch.delitem(sys.modules, "flash_attn")
    flash_attention.has_package.cache_clear()


def test_a_layout_tells_where_texts_end_and_finds_every_row_of_every_head_again() -> None:
    layout = PackedLayout(LENGTHS, "cpu")
    assert layout.ends.tolist() == [0, 1, 3, 8, 16, 25, 40, 56, 72, 93] and layout.ends.dtype == torch.int32
    rows = layout.head_rows(H)
    assert torch.equal(rows.gather[rows.scatter], torch.arange(T * H))
    padded = sum(b.texts * b.width for b in layout.buckets) * H
    assert len(rows.gather) == padded and len(rows.padding) == padded - T * H > 0
    assert not set(rows.padding.tolist()) & set(rows.scatter.tolist())
    assert layout.head_rows(H) is rows, "made once for all layers"
