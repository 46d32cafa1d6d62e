"""When a run is saved besides as `train` says: now and then, and when it is told to stop."""

import signal
import time

import torch
import torch.distributed
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import SaveStrategy

from sbert_train.errors import Interrupted
from sbert_train.training.signals import NAMES, StopSignals

SECONDS = 15 * 60.0
"""What an interruption may cost, whatever save_strategy says, unless it says `no`."""


class SavePoints(TrainerCallback):
    """Saves at the end of a step where that is due, and leaves the run where it was told to stop.

    The last step of an epoch is saved when its epoch has ended: an evaluation may come between, and what it finds (the
    best model, a reason to stop early) would be missing from a checkpoint of before.
    """

    def __init__(self, signals: StopSignals | None = None, seconds: float = SECONDS) -> None:
        """Prepare.

        Args:
            signals: tells whether the run was told to stop.
            seconds: from one checkpoint to the next at most.
        """
        self._signals = signals or StopSignals()
        self._seconds = seconds
        self._saved_at = 0.0
        self._began_at = 0
        self._owed = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Read anew how often to log, evaluate and save: a checkpoint brings what was asked for when it was written."""
        state.compute_steps(args, state.max_steps)
        self._began_at = state.global_step
        self._saved_at = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Save if it is time, but for the last step of an epoch."""
        if self._is_due(args):
            control.should_save = True
        # The epoch is its number plus the share that is done, which is exactly 1 after the last step.
        if control.should_save and (control.should_training_stop or float(state.epoch or 0).is_integer()):
            control.should_save, self._owed = False, True

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Save what its last step left to do, and the last step of all, so that a finished run has nothing left."""
        if state.global_step == self._began_at:  # it was finished: nothing was trained, nothing is new
            control.should_log = control.should_evaluate = control.should_save = False
            return
        ends = control.should_training_stop and args.save_strategy != SaveStrategy.NO
        if self._told_to_stop(args) or self._owed or ends:
            control.should_save, self._owed = True, False

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """A run that was told to stop while it was evaluated is saved behind it."""
        if self._told_to_stop(args):
            control.should_save = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Leave, now that nothing is lost by it."""
        self._saved_at = time.monotonic()
        if self._told_to_stop(args):
            # Where another process was told, it was by whoever ends all of them.
            number = signal.Signals(self._signals.requested or signal.SIGTERM)
            raise Interrupted(
                number,
                f"stopped by {NAMES[number]} after step {state.global_step} of {state.max_steps}, which is saved in "
                f"{args.output_dir}/checkpoint-{state.global_step}",
            )

    def _told_to_stop(self, args: TrainingArguments) -> bool:
        return _any_of_all(args, self._signals.requested is not None)

    def _is_due(self, args: TrainingArguments) -> bool:
        late = args.save_strategy != SaveStrategy.NO and time.monotonic() - self._saved_at >= self._seconds
        return _any_of_all(args, late or self._signals.requested is not None)


def _any_of_all(args: TrainingArguments, wanted: bool) -> bool:
    """Whether any process wants it: all of them must save, and leave, at the same step."""
    if args.world_size == 1:
        return wanted
    found = torch.tensor(int(wanted), device=args.device)
    torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
    return bool(found)
