"""What both sides train with, from a cell alone."""

from collections.abc import Mapping
from typing import Any

from benchmarks.arguments import COMMON
from benchmarks.speed.runs import Run

LEARNING_RATE = 2e-5
SCALE = 20.0

OBJECTIVES: Mapping[str, Mapping[str, Any]] = {
    "in_batch_negatives": {"name": "in_batch_negatives", "scale": SCALE},
    "cosine_regression": {"name": "cosine_regression"},
}
"""The `objective` block of our configuration; `benchmarks.losses` has the peer's loss of that name and options."""


def training_arguments(run: Run) -> dict[str, Any]:
    """TrainingArguments of both sides, but for precision and seed; none where the defaults are compared."""
    if not run.cell.batch:
        return {}
    return {
        **COMMON,
        "per_device_train_batch_size": run.cell.batch,
        "num_train_epochs": 1,
        "learning_rate": LEARNING_RATE,
        "logging_steps": 1 if run.cell.table == "losses" else run.steps + 1,
    }
