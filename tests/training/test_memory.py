"""The memory meter sees what is held from its making on."""

import torch

from sbert_train.training.memory import MemoryMeter

MEGABYTE = 1_000_000


def test_what_was_held_and_let_go_counts_as_the_most_that_was_held() -> None:
    meter = MemoryMeter()
    before = meter.peak()
    held = torch.ones(25 * MEGABYTE)  # 100 MB, touched
    assert float(held[-1]) == 1.0
    del held
    assert 90 * MEGABYTE < meter.peak() - before < 200 * MEGABYTE


def test_a_new_meter_forgets_what_was_held_before_it() -> None:
    held = torch.ones(50 * MEGABYTE)
    old = MemoryMeter().peak()
    del held
    assert MemoryMeter().peak() < old - 100 * MEGABYTE
