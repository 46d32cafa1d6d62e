"""What is seen of a training on either side, by one and the same callback of transformers' Trainer."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import transformers.trainer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from benchmarks.speed.profiling import StepProfile
from benchmarks.speed.runs import Run
from benchmarks.speed.started import seconds_since_start
from sbert_train.training.memory import MemoryMeter


class Clock(TrainerCallback):
    """Notes when steps end, what is logged, and the memory that training takes."""

    def __init__(self, profile: StepProfile | None = None) -> None:
        self.profile = profile
        self.step_seconds: list[float] = []
        self.losses: list[float] = []
        self.seconds: float | None = None
        """The reported training time, `train_runtime`."""
        self.setup_seconds = 0.0
        self.base_bytes = 0
        self.peak_bytes = 0
        self.settings: dict[str, Any] = {}
        """What was trained with, as the arguments say."""
        self._last = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.settings = settings_of(args)
        self.setup_seconds = seconds_since_start()
        self._meter = MemoryMeter()
        self.base_bytes = self._meter.base
        self._last = time.perf_counter()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        now = time.perf_counter()
        self.step_seconds.append(now - self._last)
        self._last = now

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        logs = logs or {}
        if "train_runtime" in logs:
            self.seconds = logs["train_runtime"]
            self.peak_bytes = self._meter.peak()
        elif "loss" in logs:
            self.losses.append(logs["loss"])


def settings_of(args: TrainingArguments) -> dict[str, Any]:
    """What a reader of the defaults wants to know."""
    return {
        "batch": args.train_batch_size,
        "epochs": args.num_train_epochs,
        "precision": "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32",
        "optimizer": str(getattr(args.optim, "value", args.optim)),
        "learning rate": args.learning_rate,
        "warm-up": args.warmup_steps,
        "max_grad_norm": args.max_grad_norm,
        "checkpoints": str(getattr(args.save_strategy, "value", args.save_strategy)),
    }


@contextmanager
def watching(run: Run) -> Iterator[Clock]:
    """Every Trainer that is made meanwhile has this callback: neither side is changed for it."""
    clock = Clock(StepProfile(run.steps)) if run.cell.table == "profile" else Clock()
    usual: list[Any] = transformers.trainer.DEFAULT_CALLBACKS
    # An instance is taken as well as a class, whatever the annotation says.
    seen: list[Any] = [clock, *([clock.profile] if clock.profile else [])]
    transformers.trainer.DEFAULT_CALLBACKS = [*usual, *seen]
    try:
        yield clock
    finally:
        transformers.trainer.DEFAULT_CALLBACKS = usual
