"""What is seen of a training while it runs: one progress bar, and a log of lines of JSON."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class ProgressBar(TrainerCallback):
    """One bar with loss, learning rate and the latest evaluation; a plain line per log when it is not a terminal."""

    def __init__(self, watched: str | None, stream: TextIO | None = None) -> None:
        """Prepare the bar.

        Args:
            watched: the metric shown with each evaluation, such as eval_stsb_spearman_cosine.
            stream: where to write; stderr when None.
        """
        self._watched = watched
        self._stream = stream or sys.stderr
        self._shown: dict[str, str] = {}
        self._bar: tqdm[Any] | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero and self._stream.isatty():
            self._bar = tqdm(total=state.max_steps, initial=state.global_step, unit="step", desc="Training",
                             file=self._stream, dynamic_ncols=True)  # fmt: skip

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self._bar is not None:
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
            self._bar.set_postfix(self._shown)
        else:
            shown = "  ".join(f"{name} {value}" for name, value in new.items())
            print(f"step {state.global_step}/{state.max_steps}  {shown}", file=self._stream, flush=True)

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
    """Appends whatever Trainer logs to a file, one JSON object a line, with the step and the epoch."""

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
        """Append the entry, on the first process."""
        if state.is_world_process_zero:
            entry = {"step": state.global_step, "epoch": state.epoch, **(logs or {})}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
