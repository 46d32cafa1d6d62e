"""The learning-rate range test: a short training whose rate grows from step to step, and where its loss falls fastest.

Smith 2017, "Cyclical Learning Rates for Training Neural Networks", section 3.3; with exponential growth and the
steepest fall as fastai has them (Gugger 2018, "How Do You Find A Good Learning Rate").

S steps.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)

from sbert_train.config import RunConfig
from sbert_train.paths import expanded
from sbert_train.training.arguments import LEAVES_NOTHING, training_arguments
from sbert_train.training.everything_wrong import everything_wrong_told
from sbert_train.training.faults import Diverged, full_disk_told
from sbert_train.training.find_lr_curve import smooth, suggest, too_noisy
from sbert_train.training.find_lr_plot import plot
from sbert_train.training.lock import locked
from sbert_train.training.parts import Parts, load_parts
from sbert_train.training.plan import trust_lines
from sbert_train.training.run_folder import RunFolder, replace_text, write_json
from sbert_train.training.trainer import SentenceTrainer

LOWEST, HIGHEST, STEPS = 1e-7, 1.0, 100
DIVERGED = 4.0
"""Times the lowest smoothed loss, as in fastai: beyond that the rest tells nothing."""
FORCED: dict[str, Any] = {
    **LEAVES_NOTHING,
    "learning_rate": LOWEST,
    "logging_strategy": "steps",
    "logging_steps": 1,
}
"""Arguments of a run that its sweep has otherwise."""


@dataclass(frozen=True)
class RangeTest:
    """What a range test found.

    Attributes:
        learning_rates, losses: (S,) of each step, up to where the loss diverged.
        smoothed: (S,) the losses, smoothed.
        suggestion: where the loss falls fastest; None where it never fell by more than its noise.
        diverged_at: the rate at which the sweep was stopped; None where it came to its end.
    """

    learning_rates: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    suggestion: float | None
    diverged_at: float | None


@dataclass(frozen=True)
class FoundLr:
    """A range test, and the files that hold it."""

    test: RangeTest
    values: Path
    plot: Path
    first_process: bool


def find_lr(config: RunConfig, *, say: Callable[[str], None] = print) -> FoundLr:
    """Try the learning rates of a run on its own batches, and write find_lr.json and find_lr.svg to its folder. Nothing
    is trained, and nothing else in the folder is touched.

        find_lr.json: RangeTest, field by field

    Raises:
        SbertTrainError: the configuration, the data or the model is not as it must be; the folder holds other files, or
            a run is going on there; the first loss was no number; or there was not enough memory or disk.
    """
    folder = RunFolder(expanded(config.output_dir))
    with everything_wrong_told(config):
        folder.require_ours()
        training_arguments(config)  # as the run has them
    args = training_arguments(config, **FORCED, max_steps=STEPS)
    first = bool(args.process_index == 0)
    with locked(folder.root) if first else nullcontext():
        for line in trust_lines(config) if first else ():
            say(line)
        set_seed(config.seed)
        with everything_wrong_told(config):
            parts = load_parts(config, args)
        try:
            test = range_test(parts, args)
        finally:
            folder.remove_empty()
        if first:
            with full_disk_told(folder.root):
                folder.root.mkdir(parents=True, exist_ok=True)
                write_json(folder.find_lr_values, asdict(test))
                replace_text(folder.find_lr_plot, plot(test))
    return FoundLr(test, folder.find_lr_values, folder.find_lr_plot, first)


def range_test(
    parts: Parts,
    args: TrainingArguments,
    *,
    lowest: float = LOWEST,
    highest: float = HIGHEST,
    steps: int = STEPS,
) -> RangeTest:
    """Train for some steps with the objective, the batches and the optimizer of a run, each step at a higher rate; then
    put back the weights and the random numbers.

    Args:
        args: those of FORCED, with max_steps of `steps`.
        lowest, highest: the learning rates of the first step and of the last.

    Raises:
        TrainingError: the first loss was no number, or there was not enough memory.
    """
    growth = (highest / lowest) ** (1 / max(1, steps - 1))
    sweep = _Sweep()
    with _as_before(parts):
        args.learning_rate = lowest
        trainer = _SweepTrainer(
            parts.model,
            args,
            rows=parts.data.rows,
            batches=parts.data.batches,
            frozen=parts.frozen,
            callbacks=[sweep],
        )
        trainer.growth = growth
        try:
            trainer.train()
        except Diverged:  # which is what the sweep is to find, but not with its first step
            if not sweep.losses or args.world_size > 1:  # the others may not have met it
                raise
            sweep.diverged = sweep.no_number = True
        finally:
            trainer.model.zero_grad(set_to_none=True)
    rates = tuple(lowest * growth**step for step in range(len(sweep.losses)))
    at = len(rates) if sweep.no_number else len(rates) - 1
    smoothed = smooth(sweep.losses)
    return RangeTest(
        learning_rates=rates,
        losses=tuple(sweep.losses),
        smoothed=tuple(smoothed.tolist()),
        suggestion=suggest(rates, sweep.losses),
        diverged_at=lowest * growth**at if sweep.diverged else None,
    )


class _SweepTrainer(SentenceTrainer):
    """A Trainer whose learning rate is multiplied by `growth` after each step."""

    growth = 1.0

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Exponential growth in place of the run's schedule."""
        chosen: Any = optimizer or self.optimizer
        self.lr_scheduler = LambdaLR(chosen, lambda step: self.growth**step)
        return self.lr_scheduler


class _Sweep(TrainerCallback):
    """Takes down the loss of each step, and stops where it has diverged."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.diverged = False
        self.no_number = False
        """Whether the step that diverged has no loss, or none that is a number."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if "loss" not in (logs or {}):
            return
        assert logs is not None
        self.losses.append(float(logs["loss"]))
        smoothed = smooth(self.losses)
        if smoothed[-1] > DIVERGED * smoothed.min():
            self.diverged = True
            control.should_training_stop = True


@contextmanager
def _as_before(parts: Parts) -> Iterator[None]:
    """Put back weights, modes and random numbers, whatever happens in between."""
    model = parts.model
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    modes = {name: module.training for name, module in model.named_modules()}
    epoch = parts.data.batches.epoch
    numbers = random.getstate(), np.random.get_state(), torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    try:
        yield
    finally:
        model.load_state_dict(weights)
        for name, module in model.named_modules():
            module.training = modes[name]
        parts.data.batches.set_epoch(epoch)
        random.setstate(numbers[0])
        np.random.set_state(numbers[1])
        torch.set_rng_state(numbers[2])
        if on_gpu is not None:
            torch.cuda.set_rng_state_all(on_gpu)


def summary(found: FoundLr, config: str) -> list[str]:
    """What to print, with the command that goes on from here."""
    test = found.test
    low, high = test.learning_rates[0], test.learning_rates[-1]
    best = int(np.argmin(test.smoothed))
    least = f"{test.smoothed[best]:.4f} at {test.learning_rates[best]:.1e}"
    end = "" if test.diverged_at is None else f", diverged at {test.diverged_at:.1e}"
    lines = [
        f"tried      {len(test.losses)} steps from {low:.1e} to {high:.1e}; nothing was trained",
        f"loss       {test.smoothed[0]:.4f} at first, lowest {least}{end}",
    ]
    lines.append(f"written    {found.values}, {found.plot}")
    if test.suggestion is None and too_noisy(test.losses):
        lines.append(
            "suggestion none: the loss is too noisy to tell: a larger batch helps (train.per_device_train_batch_size, "
            "train.gradient_accumulation_steps)"
        )
        return lines
    if test.suggestion is None:
        lines.append("suggestion none: the loss never fell; look at model.freeze, the objective and the data")
        return lines
    rate = f"{test.suggestion:.1e}"
    lines += [
        f"suggestion {rate}, where the loss falls fastest. Next:",
        "",
        f"  sbert-train fit --config {config} train.learning_rate={rate}",
    ]
    return lines
