"""transformers' Trainer with checkpoints that are whole or absent, and from which training goes on exactly.

The methods that are replaced or called here and begin with an underscore are private ones of Trainer:
tests/training/test_trainer_methods.py notices when they drift.
"""

import time
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, cast

import safetensors.torch
from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from transformers import Trainer
from transformers.trainer_callback import ExportableState

from sbert_train.errors import TrainingError
from sbert_train.training import checkpoints, faults
from sbert_train.training import progress as progress_file
from sbert_train.training.checkpoints import Checkpoint, taken_up
from sbert_train.training.identity import FILE as IDENTITY_FILE
from sbert_train.training.memory import MemoryMeter
from sbert_train.training.progress import Progress
from sbert_train.training.run_folder import write_json

WEIGHTS_FILE = "model.safetensors"
BESIDE, REPORTS = 50_000, 60_000
"""Bytes that a checkpoint takes besides its weights, and the reports of a run, however small the model is."""


class ResumableTrainer(Trainer):
    """Saves and takes up checkpoints, and stops where a loss or a gradient is not a finite number."""

    model: nn.Module

    def __init__(
        self,
        *args: Any,
        progress: Progress | None = None,
        identity: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Set up training.

        Args:
            progress: what the run adds up; it is read from the checkpoint that training goes on from.
            identity: what the run is made of, kept in each checkpoint.
        """
        super().__init__(*args, **kwargs)
        self.progress = progress or Progress()
        self._identity = dict(identity or {})
        self._keep = self.args.save_total_limit
        self.args.save_total_limit = None  # Trainer would remove whatever is named like a checkpoint
        self._began: float | None = None
        self._meter: MemoryMeter | None = None
        self.tokens_here = 0
        """Tokens that this process read since the processes last added up theirs."""

    @property
    def _folder(self) -> Path:
        return Path(str(self.args.output_dir))

    @property
    def seconds(self) -> float:
        """Training so far, with evaluations and checkpoints, in all parts of the run together."""
        return self.progress.seconds + (0.0 if self._began is None else time.monotonic() - self._began)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Trainer's, by the clock.

        Raises:
            TrainingError: training diverged, or the best model is not there to end with.
        """
        self._began = time.monotonic()
        self._meter = MemoryMeter(cuda=self.args.device.type == "cuda")
        try:
            trained = super().train(*args, **kwargs)
        except faults.Diverged as error:
            raise faults.with_kept(error, self._folder) from error
        self._stop_clock()
        self._add_up()
        if self.args.load_best_model_at_end and self.state.best_global_step and self._best is None:
            raise self._no_best("it is gone")  # Trainer would end with the last model, and not say so
        return trained

    def _stop_clock(self) -> None:
        self.progress.seconds, self._began = self.seconds, None

    def _add_up(self) -> None:
        """Add up what every process counts by itself; all of them have to come here."""
        own = (self.tokens_here, 0 if self._meter is None else self._meter.peak())
        every = gather_object([own]) if self.args.world_size > 1 else [own]
        tokens, peaks = zip(*every, strict=True)
        self.tokens_here = 0
        if self.progress.tokens is not None:
            self.progress.tokens += sum(tokens)
        self.progress.peak_memory_bytes = max(self.progress.peak_memory_bytes, *peaks)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The batches of an optimizer step; none where the run that this one goes on from had come to its end. Trainer
        sees that only behind another step, if the end lies within an epoch."""
        if self.progress.stopped_early or self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True
            return [], None
        return super().get_batch_samples(*args, **kwargs)

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Trainer's.

        Raises:
            TrainingError: the loss is not a finite number.
        """
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        value = loss.item()  # Trainer itself would look at each, to leave NaN out of its log
        if not isfinite(value):
            raise faults.diverged(f"the loss of step {self.state.global_step + 1} is {value}")
        self.progress.loss += value
        return loss

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        """Trainer's, before the optimizer's step; with fp16 a gradient that overflows is left out by the scaler.

        Raises:
            TrainingError: the gradient is not finite.
        """
        norm: Any = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[no-untyped-call]
        if not self.args.fp16 and not isfinite(float(norm)):
            raise faults.diverged(
                f"the norm of the gradient of step {self.state.global_step + 1} is {float(norm)}"
            )
        return norm

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Trainer's; but a new best is saved even if nothing is due, for the run shall end with it; and what was to be
        saved before the evaluation is, even if save_strategy is best and this is none."""
        wanted = self.control.should_save
        is_new = bool(super()._determine_best_metric(metrics, trial))
        self.control.should_save = wanted or (is_new and bool(self.args.load_best_model_at_end))
        return is_new or wanted

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        """Write all that training goes on from, then give it its name, then remove older ones.

        Raises:
            TrainingError: a weight is not finite.
            OSError, RuntimeError, SafetensorError: the disk did not take it; older checkpoints are whole.
        """
        folder, step = self._folder, self.state.global_step
        faults.require_finite(self.model, step)
        self._add_up()
        stage = checkpoints.stage_of(folder, step)
        try:
            if self.is_world_process_zero():
                checkpoints.begin_stage(folder, step)
            self.accelerator.wait_for_everyone()
            self._write(stage)
            self.accelerator.wait_for_everyone()
            if self.is_world_process_zero():
                checkpoints.seal(folder, step)
        except BaseException:
            if self.is_world_process_zero():
                checkpoints.clean_up(folder)
            raise
        self.accelerator.wait_for_everyone()
        self._find_best()
        if self.is_world_process_zero():
            checkpoints.rotate(folder, newest=step, limit=self._keep, best=self.state.best_global_step)

    def _write(self, stage: Path) -> None:
        self._save_optimizer_and_scheduler(str(stage))
        self._save_scaler(str(stage))
        self._save_rng_state(str(stage))
        if not self.is_world_process_zero():
            return
        safetensors.torch.save_file(self.model.state_dict(), stage / WEIGHTS_FILE)
        self._write_state(stage)

    def _write_state(self, stage: Path) -> None:
        states: dict[str, Any] = cast(Any, self.state.stateful_callbacks)
        for callback in [*self.callback_handler.callbacks, self.control]:
            if isinstance(callback, ExportableState):
                states[type(callback).__name__] = callback.state()
        self.state.best_model_checkpoint = None  # a path, which may be moved; best_global_step tells it
        self.state.save_to_json(str(stage / "trainer_state.json"))
        stopped = self.control.should_training_stop and self.state.global_step < self.state.max_steps
        now = {**self.progress.to_json(), "seconds": self.seconds, "stopped_early": stopped}
        write_json(stage / progress_file.FILE, now)
        write_json(stage / IDENTITY_FILE, self._identity)

    def bytes_to_come(self) -> int:
        """About what the disk must have room for: the checkpoints that are kept and one that is being written, beside
        those that are there. Of each weight that trains there are two numbers more, as Adam keeps them."""
        weights = sum(int(tensor.nbytes) for tensor in self.model.state_dict().values())
        moments = sum(8 * weight.numel() for weight in self.model.parameters() if weight.requires_grad)
        one = weights + moments + BESIDE
        there = checkpoints.size_of(checkpoints.list_checkpoints(self._folder))
        kept = max(2, self._keep or 2) + bool(self.args.load_best_model_at_end)
        return max(one, (kept + 1) * one - there) + weights + REPORTS

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """Take up the weights, all of them, and what the run had added up.

        Raises:
            TrainingError: the checkpoint lacks weights of this model, or has others.
        """
        checkpoint = Path(resume_from_checkpoint)
        self._load_weights(checkpoint)
        with taken_up(checkpoint):
            found = Progress.from_json(Checkpoint(checkpoint, 0).read_json(progress_file.FILE))
        vars(self.progress).update(vars(found))

    def before_best(self) -> None:
        """Called while the weights are still those of the last step, when those of a better one will replace them."""

    def _load_weights(self, checkpoint: Path) -> None:
        with taken_up(checkpoint):
            weights = safetensors.torch.load_file(checkpoint / WEIGHTS_FILE, device="cpu")
        try:
            self.model.load_state_dict(weights)
        except RuntimeError as error:
            why = " ".join(str(error).split())[:200]
            raise TrainingError(f"{checkpoint} does not fit the model of this run: {why}") from error

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Trainer's; but the learning rate, its schedule and the weight decay are those of this run, not those that
        the checkpoint brings, so that a change of them takes effect."""
        asked_for = [{k: v for k, v in group.items() if k != "params"} for group in self._groups()]
        with taken_up(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        for group, asked in zip(self._groups(), asked_for, strict=True):
            group.update({key: asked[key] for key in ("weight_decay", "initial_lr") if key in asked})
        scheduler: Any = self.lr_scheduler
        if isinstance(scheduler, LambdaLR):  # as all that depend on the step alone
            scheduler.base_lrs = [group["initial_lr"] for group in self._groups()]
            for group, base, share in zip(
                self._groups(), scheduler.base_lrs, scheduler.lr_lambdas, strict=True
            ):
                group["lr"] = base * share(scheduler.last_epoch)
            scheduler._last_lr = [group["lr"] for group in self._groups()]  # what is logged

    def _load_scaler(self, checkpoint: str | None) -> None:
        """Trainer's, where there is a scaler now, too."""
        if getattr(self.accelerator, "scaler", None) is not None:
            with taken_up(checkpoint):
                super()._load_scaler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Trainer's."""
        with taken_up(checkpoint):
            super()._load_rng_state(checkpoint)

    def _groups(self) -> list[dict[str, Any]]:
        assert self.optimizer is not None
        return self.optimizer.param_groups

    def _init_training_state(self, *args: Any, **kwargs: Any) -> Any:
        """Trainer's, with the best checkpoint where it lies now.

        Raises:
            TrainingError: the checkpoint is of a later step than this run has.
        """
        found = super()._init_training_state(*args, **kwargs)
        step, steps = self.state.global_step, self.state.max_steps
        if step > steps:
            raise TrainingError(
                f"train.max_steps, train.num_train_epochs: this run has {steps} steps, and the checkpoint to go on "
                f"from is that of step {step}; name an earlier one by --resume, or begin anew with --overwrite"
            )
        if 0 < step < steps and not self.progress.stopped_early:
            self.progress.resumed_from.append(step)
        self._find_best()
        return found

    def _find_best(self) -> None:
        self.state.best_model_checkpoint = None if self._best is None else str(self._best.path)

    @property
    def _best(self) -> Checkpoint | None:
        step = self.state.best_global_step
        return checkpoints.checkpoint_at(self._folder / f"checkpoint-{step}") if step else None

    def _no_best(self, wrong: str) -> TrainingError:
        return TrainingError(
            f"the best model is that of step {self.state.best_global_step}, whose checkpoint is damaged: {wrong}; run "
            "it again with --resume auto to go on from the newest one whose best model is whole"
        )

    def _load_best_model(self) -> None:
        """Take up the weights of the best checkpoint; training is over.

        Raises:
            TrainingError: it is damaged.
        """
        self._stop_clock()
        if self.state.best_global_step != self.state.global_step:
            self.before_best()
        best = self._best
        wrong = "it is gone" if best is None else checkpoints.damage(best)
        if best is None or wrong:
            raise self._no_best(str(wrong))
        self._load_weights(best.path)
