"""The story of a run: config, parts, plan, baseline, training, report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from transformers import TrainingArguments, set_seed

from sbert_train.config import RunConfig, dump_config
from sbert_train.errors import ConfigError, TrainingError
from sbert_train.evaluation.compare import Comparison, before_after
from sbert_train.evaluation.results import TaskResult
from sbert_train.training.arguments import early_stopping, training_arguments
from sbert_train.training.callbacks import JsonLog, ProgressBar
from sbert_train.training.parts import Parts, load_parts
from sbert_train.training.plan import plan_lines, trust_lines
from sbert_train.training.prepare import own_head
from sbert_train.training.report import describe_speed, write_card, write_report
from sbert_train.training.run_folder import RunFolder
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.stopwatch import Stopwatch
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
    config: RunConfig, *, overwrite: bool = False, say: Say = print, started: float | None = None
) -> FitResult:
    """Fine-tune an encoder as a configuration says, measured before and after.

    Args:
        overwrite: replace a run with another configuration, or an unfinished one, in the same folder.
        say: receives the plan and what happens, one line at a time, on the first process only.
        started: when the command was given, by time.monotonic(), for the report; None: now.

    Raises:
        SbertTrainError: the configuration, the data or the model is not as it must be.
    """
    stopwatch = Stopwatch(started)
    folder, config_text = RunFolder(Path(config.output_dir).expanduser()), dump_config(config)
    args = training_arguments(config)
    folder.require_usable(config_text, overwrite=overwrite)
    base = str(config.as_written(("model", "base"), config.model.base))
    first = args.process_index == 0
    set_seed(config.seed)

    if first:
        for line in trust_lines(config):
            say(line)
    parts = load_parts(config, args)
    if first:
        folder.begin(config_text)
        for line in plan_lines(base, parts, args):
            say(line)

    trainer = _trainer(config, args, parts, folder, stopwatch)
    _require_optimizer(trainer)
    before = _baseline(trainer, config)
    _require_selectable(args, before)
    trained = trainer.train()
    _require_finite(parts.model)
    if first:
        say(f"trained    {describe_speed(trainer, trained.metrics)}")
        parts.model.save(folder.model)
        if args.load_best_model_at_end:
            state = trainer.state
            kept = f"the model of step {state.best_global_step} of {state.global_step}"
            say(f"kept       {kept}, the best by {args.metric_for_best_model}")
    after = trainer.run_tasks()

    comparison = before_after(before, after) if parts.tasks else None
    if first:
        sets = (*parts.data.sets, *parts.eval_sets)
        write_report(folder, base, trainer, trained.metrics, sets, comparison)
        name = Path(str(config.as_written(("output_dir",), config.output_dir))).name
        write_card(folder, name, base, parts.model.encoder, parts.data.sets, comparison)
    trainer.accelerator.wait_for_everyone()  # a process that left first could leave others waiting for ever
    return FitResult(folder, base, comparison, _selected_by(args), first)


def _trainer(
    config: RunConfig, args: TrainingArguments, parts: Parts, folder: RunFolder, stopwatch: Stopwatch
) -> SentenceTrainer:
    stop_early = early_stopping(config)
    return SentenceTrainer(
        parts.model,
        args,
        rows=parts.data.rows,
        batches=parts.data.batches,
        tasks=parts.tasks,
        dims=parts.evaluated_dims,
        frozen=parts.frozen,
        stopwatch=stopwatch,
        callbacks=[
            ProgressBar(args.metric_for_best_model),
            JsonLog(folder.log),
            *([stop_early] if stop_early else []),
        ],
    )


def _baseline(trainer: SentenceTrainer, config: RunConfig) -> dict[str, TaskResult]:
    """The results of the base: with its own head, where the model has a new one that nothing has trained yet."""
    return trainer.run_tasks() if config.model.head is None else trainer.run_tasks_with(own_head(config))


def _require_optimizer(trainer: SentenceTrainer) -> None:
    """What torch or a missing package says to the optimizer's arguments is better heard before the baseline."""
    try:
        trainer.create_optimizer()
    except (ValueError, ImportError, RuntimeError) as error:
        raise ConfigError(f"train.optim: {' '.join(str(error).split())}") from error


def _require_finite(model: SiameseModel) -> None:
    """A run that diverged must not end as a model."""
    if not all(bool(weights.isfinite().all()) for weights in model.parameters()):
        raise TrainingError(
            "training diverged: weights are no longer finite numbers; lower train.learning_rate, warm up for longer "
            "(train.warmup_steps), or look for extreme scores in the data. No model was written"
        )


def _selected_by(args: TrainingArguments) -> str | None:
    """EVALSET_METRIC of the metric that selects the best checkpoint; None where none does."""
    metric = args.metric_for_best_model if args.load_best_model_at_end else None
    return None if metric is None else metric.removeprefix("eval_")


def _require_selectable(args: TrainingArguments, results: Mapping[str, TaskResult]) -> None:
    """The metric that selects the best checkpoint must be one that the eval sets give."""
    wanted = _selected_by(args)
    if wanted is None:
        return
    known = [f"{name}_{metric}" for name, result in results.items() for metric in result.metrics]
    if wanted not in known:
        raise ConfigError(
            f"train.metric_for_best_model: no eval set gives {wanted}; there are: {', '.join(known)}"
        )
