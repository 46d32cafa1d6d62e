"""What hardware is native to, and which precision a forward runs in."""

import pytest
import torch

from sbert_train.model.precision import native_precision

CPU = torch.device("cpu")


def test_native_precision_on_a_cpu_is_what_its_instructions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    assert native_precision(use_cpu=True) == "bf16"
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert native_precision(use_cpu=True) == "fp32"
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported")
    assert native_precision(use_cpu=True) == "fp32"


def test_native_precision_on_a_gpu_is_that_of_its_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for capability, expected in (((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda capability=capability: capability)
        assert native_precision(use_cpu=False) == expected
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert native_precision(use_cpu=False) == "fp32"
