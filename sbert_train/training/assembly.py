"""The parts of a run -> its Trainer, with everything that watches it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerState, TrainingArguments

from sbert_train.config import RunConfig
from sbert_train.training.arguments import early_stopping
from sbert_train.training.callbacks import JsonLog, ProgressBar
from sbert_train.training.collapse import CollapseWatch
from sbert_train.training.monitors import make_probe
from sbert_train.training.parts import Parts
from sbert_train.training.progress import Progress
from sbert_train.training.save_points import SavePoints
from sbert_train.training.signals import StopSignals
from sbert_train.training.trainer import SentenceTrainer


def make_trainer(
    config: RunConfig,
    args: TrainingArguments,
    parts: Parts,
    log: Path,
    *,
    identity: Mapping[str, Any],
    signals: StopSignals,
    started: float,
    say: Callable[[str], None],
) -> tuple[SentenceTrainer, ProgressBar]:
    """The Trainer of a run, and its bar, to be closed where training is left before its end.

    Args:
        log: where log.jsonl is to be.
        identity: what the run is made of, kept in each checkpoint.
        signals: tell whether the run was told to stop.
        started: when the run began, by time.monotonic().
        say: takes a line, on the first process.
    """
    stop_early, progress = early_stopping(config), Progress()
    bar, entries = ProgressBar(args.metric_for_best_model, progress), JsonLog(log)

    def warn(state: TrainerState, line: str) -> None:
        with bar.put_aside():
            say(f"WARNING    step {state.global_step:,}: {line}")
        entries.add(state, {"warning": line})

    trainer = SentenceTrainer(
        parts.model,
        args,
        rows=parts.data.rows,
        batches=parts.data.batches,
        tasks=parts.tasks,
        dims=parts.evaluated_dims,
        frozen=parts.frozen,
        probe=make_probe(parts.data.sets, parts.objectives),
        judge=CollapseWatch(config.model.freeze, warn, progress).look,
        started=started,
        progress=progress,
        identity=identity,
        callbacks=[bar, entries, SavePoints(signals), *filter(None, [stop_early])],
    )
    return trainer, bar
