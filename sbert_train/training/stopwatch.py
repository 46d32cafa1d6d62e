"""Where the time of a run goes: to its first step, to input, to training steps."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sbert_train.training.progress import Progress


class Stopwatch(TrainerCallback):
    """Adds up what the main thread of this process spends on each optimizer step, evaluations and checkpoints left out,
    in all parts of a run together.

    What dataloader workers do beside it is not input time, unless it waits for them. On a GPU a step ends when Trainer
    reads its loss, for it looks at every one (`logging_nan_inf_filter`).
    """

    def __init__(self, started: float | None = None, progress: Progress | None = None) -> None:
        """Begin.

        Args:
            started: when the run began, by time.monotonic(); None: now.
            progress: where the times are added up.
        """
        self._started = time.monotonic() if started is None else started
        self._progress = progress or Progress()
        self._step_began: float | None = None
        self._read_seconds = 0.0

    @property
    def seconds_to_first_step(self) -> float | None:
        """From the beginning of the run to the end of its first optimizer step; None before that."""
        return self._progress.seconds_to_first_step

    @property
    def input_share(self) -> float | None:
        """The share of the time of all steps in which batches were read, put together and moved to the device (0 to 1);
        None before the first step."""
        steps = self._progress.step_seconds
        return self._progress.input_seconds / steps if steps else None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around whatever gets the batches of an optimizer step, with which the step begins."""
        self._step_began = began = time.monotonic()
        yield
        self._read_seconds = time.monotonic() - began

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the step, and what was read for it (but not what was read of an epoch's end in vain)."""
        now = time.monotonic()
        if self._step_began is not None:
            self._progress.step_seconds += now - self._step_began
            self._progress.input_seconds += self._read_seconds
            self._step_began = None
        if self._progress.seconds_to_first_step is None:
            self._progress.seconds_to_first_step = now - self._started
