"""What is seen of a training while it runs: one progress bar, and a log of lines of JSON."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sbert_train.training.progress import Progress

WIDE = 110
"""Columns from which on a bar has room for the name of the score."""
SECONDS = 1.0
"""From one picture of the bar to the next."""


class ProgressBar(TrainerCallback):
    """One bar with loss, learning rate, speed, what is left and the latest evaluation; a plain line per log when it is
    not a terminal.

    The speed is that of training alone, since this process began: rows of all processes over the time of the steps.
    What is left is the time of the steps to come at that speed; evaluations and checkpoints come on top.
    """

    def __init__(
        self, watched: str | None, progress: Progress | None = None, stream: TextIO | None = None
    ) -> None:
        """Prepare the bar.

        Args:
            watched: the metric shown with each evaluation, such as eval_stsb_spearman_cosine.
            progress: where rows and the time of steps are added up.
            stream: where to write; stderr when None.
        """
        self._watched = watched
        self._progress = progress or Progress()
        self._stream = stream or sys.stderr
        self._shown: dict[str, str] = {}
        self._began = (0, 0, 0.0)
        self._bar: tqdm[Any] | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._began = (state.global_step, self._progress.rows, self._progress.step_seconds)
        if state.is_world_process_zero and self._stream.isatty():
            self._bar = tqdm(
                total=state.max_steps, initial=state.global_step, file=self._stream, dynamic_ncols=True,
                mininterval=SECONDS, miniters=1,
                bar_format="{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {desc}",
            )  # fmt: skip

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self._bar is not None:
            self._describe(state)
            self._bar.update(state.global_step - self._bar.n)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Show the loss, or the watched metric of an evaluation, whichever is new."""
        if not state.is_world_process_zero:
            return
        logs = logs or {}
        new: dict[str, str] = {}
        if "loss" in logs:
            new |= {"loss": f"{logs['loss']:.4f}", "lr": f"{logs['learning_rate']:.1e}"}
        if self._watched is not None and self._watched in logs:
            new[self._watched.removeprefix("eval_")] = f"{logs[self._watched]:.4f}"
        if not new:
            return
        if self._bar is not None:
            self._shown |= new
            self._describe(state)
        else:
            shown = [f"{name} {value}" for name, value in new.items()]
            if "loss" in new:
                shown += self._speed(state)
            print(
                f"step {state.global_step}/{state.max_steps}", *shown, sep="  ", file=self._stream, flush=True
            )

    def _describe(self, state: TrainerState) -> None:
        assert self._bar is not None
        wide = (self._bar.ncols or 80) >= WIDE
        parts = [f"{name} {self._shown[name]}" for name in ("loss", "lr") if name in self._shown]
        parts += self._speed(state)
        parts += [
            f"{name if wide else 'eval'} {value}"
            for name, value in self._shown.items()
            if name not in ("loss", "lr")
        ]
        self._bar.set_description_str(("  " if wide else " ").join(parts), refresh=False)

    def _speed(self, state: TrainerState) -> list[str]:
        """Rows a second and what is left, once a step was timed."""
        step, rows, seconds = self._began
        steps, spent = state.global_step - step, self._progress.step_seconds - seconds
        if not steps or not spent:
            return []
        left = spent / steps * (state.max_steps - state.global_step)
        rate = (self._progress.rows - rows) / spent
        pairs = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        return [f"{pairs} pairs/s", f"ETA {tqdm.format_interval(left)}"]

    @contextmanager
    def put_aside(self) -> Iterator[None]:
        """Around lines that somebody else writes to the terminal: the bar goes on below them."""
        if self._bar is None:
            yield
            return
        self._bar.clear()
        yield
        sys.stdout.flush()
        self._bar.refresh()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the line of the bar, also where training was left before its end."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class JsonLog(TrainerCallback):
    """Appends whatever Trainer logs to a file, one JSON object a line, with the step and the epoch; what is not finite,
    as a gradient in fp16 may be, is null."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append the entry, but for Trainer's own summary: it takes the last batches for full ones, and only what
        was trained since the last interruption."""
        if "train_runtime" not in (logs or {}):
            self.add(state, logs or {})

    def add(self, state: TrainerState, entry: Mapping[str, float | str]) -> None:
        """Append an entry, on the first process."""
        if state.is_world_process_zero:
            finite = {
                key: value if isinstance(value, str) or isfinite(value) else None
                for key, value in entry.items()
            }
            line = json.dumps({"step": state.global_step, "epoch": state.epoch, **finite}, allow_nan=False)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
