"""The story of a run: config, parts, plan, baseline, training, report."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass

from transformers import TrainingArguments, set_seed

from sbert_train.config import RunConfig, dump_config
from sbert_train.errors import Interrupted
from sbert_train.evaluation.compare import Comparison
from sbert_train.evaluation.results import TaskResult
from sbert_train.paths import expanded
from sbert_train.streams import silently
from sbert_train.training.arguments import training_arguments
from sbert_train.training.assembly import make_trainer
from sbert_train.training.card import notes_on_results, run_name, write_card
from sbert_train.training.everything_wrong import everything_wrong_told
from sbert_train.training.faults import full_disk_told, require_finite, require_room
from sbert_train.training.identity import identity_of, require_changeable, require_same_run
from sbert_train.training.lock import locked
from sbert_train.training.parts import Parts, load_parts
from sbert_train.training.plan import make_plan, resume_lines, trust_lines
from sbert_train.training.prepare import own_head
from sbert_train.training.report import Outcome, describe_speed, write_report
from sbert_train.training.resume import AUTO, Start, agreed_checkpoint
from sbert_train.training.run_folder import RunFolder
from sbert_train.training.selection import require_selectable, selected_by
from sbert_train.training.signals import StopSignals
from sbert_train.training.trainer import SentenceTrainer

Say = Callable[[str], None]


@dataclass(frozen=True)
class FitResult:
    """What a run leaves behind."""

    folder: RunFolder
    base: str
    """The base model, as the configuration names it."""
    comparison: Comparison | None
    """The base model and the tuned one on the eval sets; None where there are none."""
    selected_by: str | None
    """EVALSET_METRIC by which the model was selected; None where it is the last."""
    first_process: bool
    """Whether this process is the one that writes and reports."""


def fit(
    config: RunConfig,
    *,
    resume: str = AUTO,
    overwrite: bool = False,
    strict: bool = False,
    allow_changes: Sequence[str] = (),
    say: Say = print,
    started: float | None = None,
) -> FitResult:
    """Fine-tune an encoder as a configuration says, measured before and after.

    A run that was interrupted goes on from its newest checkpoint and ends with the same weights as one that was not
    (bit for bit on a CPU, with the same versions and threads).

    Args:
        resume: auto: from the newest whole checkpoint in the folder of the run, if there is one; never: from the
            beginning; or the path of a checkpoint, or of a folder that holds some.
        overwrite: from the beginning, also in place of a run with another configuration in the same folder.
        strict: a damaged checkpoint is an error; otherwise it is passed over with a warning.
        allow_changes: keys of the configuration that may differ from the checkpoint (`identity.CHANGEABLE`).
        say: receives the plan and what happens, one line at a time, on the first process only.
        started: when the command was given, by time.monotonic(), for the report; None: now.

    Raises:
        SbertTrainError: the configuration, the data or the model is not as it must be; the folder is that of another
            run, or in use; training diverged; or there is not enough memory or disk.
        Interrupted: the process was told to stop (Ctrl-C, SIGTERM, SIGHUP).
    """
    signals, started = StopSignals(), time.monotonic() if started is None else started
    require_changeable(allow_changes)
    folder = RunFolder(expanded(config.output_dir))
    with everything_wrong_told(config):
        folder.require_ours()
        args = training_arguments(config)
    first = args.process_index == 0
    with signals.watching(), locked(folder.root) if first else nullcontext():
        start = Start(resume, overwrite, strict, tuple(allow_changes))
        run = _Run(config, args, folder, start, signals, started, say if first else silently)
        try:
            with full_disk_told(folder.root):
                return run.go()
        except Interrupted as stopped:
            raise Interrupted(stopped.signal, f"{stopped}; {start.how_to_go_on(folder)}") from stopped
        finally:
            folder.remove_empty()


@dataclass(frozen=True)
class _Run:
    """What the steps of the story share."""

    config: RunConfig
    args: TrainingArguments
    folder: RunFolder
    start: Start
    signals: StopSignals
    started: float
    say: Say

    @property
    def first(self) -> bool:
        return bool(self.args.process_index == 0)

    @property
    def base(self) -> str:
        return str(self.config.as_written(("model", "base"), self.config.model.base))

    def go(self) -> FitResult:
        """The story."""
        text = dump_config(self.config)
        chosen = agreed_checkpoint(self.folder, self.start, text, self.args, self.say)
        for line in trust_lines(self.config):
            self.say(line)
        set_seed(self.config.seed)
        with everything_wrong_told(self.config):
            parts = load_parts(self.config, self.args)
        identity = identity_of(self.config, self.args, parts.model.encoder, parts.data.sets, parts.eval_sets)
        changes = require_same_run(chosen, identity, self.start)
        trainer, bar = make_trainer(
            self.config, self.args, parts, self.folder.log,
            identity=identity.to_json(), signals=self.signals, started=self.started, say=self.say,
        )  # fmt: skip
        trainer.require_optimizer()
        if self.first:
            plan = make_plan(self.config, self.base, parts, self.args)
            for line in [*plan.lines, *resume_lines(chosen, changes)]:
                self.say(self.config.without_environment(line))
        before = trainer.baseline = _baseline(trainer, self.config)
        require_selectable(self.args, before)
        if self.first:
            require_room(self.folder.root, trainer.bytes_to_come())
            self.folder.prepare(text, chosen)
        trainer.accelerator.wait_for_everyone()  # until the folder is as training takes it up
        with self.signals.deferred(), closing(bar):
            trainer.train(resume_from_checkpoint=None if chosen is None else self.folder.place_of(chosen))
        self._keep(trainer, parts)
        outcome = Outcome.of(trainer, before)
        if self.first:
            hide, told = self.config.hidden, (self.folder, run_name(self.config), self.base)
            notes = notes_on_results(plan.examined, selected_by(self.args))
            write_card(self.folder, self.config, parts, outcome.comparison, notes)
            write_report(*told, trainer, plan, outcome, hide)
        trainer.accelerator.wait_for_everyone()  # one that left first could leave others waiting for ever
        return FitResult(self.folder, self.base, outcome.comparison, selected_by(self.args), self.first)

    def _keep(self, trainer: SentenceTrainer, parts: Parts) -> None:
        """Write the model, of which checkpoints have the weights only."""
        require_finite(parts.model, trainer.state.global_step)
        if not self.first:
            return
        self.say(f"trained    {describe_speed(trainer)}")
        if before := self.folder.save_model(parts.model.save):
            self.say(f"kept       {before}: what lay in {self.folder.model} was not of a run alone")
        if self.args.load_best_model_at_end:
            state = trainer.state
            kept = f"the model of step {state.best_global_step} of {state.global_step}"
            self.say(f"kept       {kept}, the best by {self.args.metric_for_best_model}")


def _baseline(trainer: SentenceTrainer, config: RunConfig) -> dict[str, TaskResult]:
    """The results of the base: with its own head, where the model has a new one that nothing has trained yet."""
    return trainer.run_tasks() if config.model.head is None else trainer.run_tasks_with(own_head(config))
