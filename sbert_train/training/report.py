"""What a finished run writes down: report.json for programs, report.html for people."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sbert_train import __version__
from sbert_train.data.examination.facts import SetFacts
from sbert_train.evaluation.compare import Comparison, before_after
from sbert_train.evaluation.results import TaskResult
from sbert_train.reporting.details import details_of
from sbert_train.reporting.page import page
from sbert_train.reporting.run import Run
from sbert_train.reporting.verdict import findings, verdict
from sbert_train.training.plan import Plan
from sbert_train.training.run_folder import RunFolder, describe_environment, replace_text, write_json
from sbert_train.training.run_log import monitors_of, read_log, warnings_of
from sbert_train.training.selection import selected_by
from sbert_train.training.trainer import SentenceTrainer

SCHEMA = 1
"""Counted up where a key of report.json goes or changes its meaning; a new key changes nothing for its readers."""

Results = Mapping[str, TaskResult]


@dataclass(frozen=True)
class Outcome:
    """What the eval sets say of a run's models."""

    before: Results
    """Of the base."""
    best: Results
    """Of the model that was kept."""
    final: Results
    """Of the model after the last step."""
    comparison: Comparison | None
    """Of the base and the model that was kept; None without eval sets."""

    @classmethod
    def of(cls, trainer: SentenceTrainer, before: Results) -> "Outcome":
        """Evaluate the model that a training ended with, on every process."""
        best = trainer.run_tasks()
        final = best if trainer.last is None else trainer.last
        return cls(before, best, final, before_after(before, best) if best else None)


def write_report(
    folder: RunFolder,
    name: str,
    base: str,
    trainer: SentenceTrainer,
    plan: Plan,
    outcome: Outcome,
    hide: Callable[[Any], Any],
) -> None:
    """Write report.json, and report.html, which shows the same.

    Args:
        name, base: of the run and its base model, as the configuration writes them.
        plan: what was known of the run before its first step.
        hide: takes from the texts of a value what the environment holds.
    """
    selected, log = selected_by(trainer.args), read_log(folder.log)
    found = findings(outcome.comparison, selected)
    report = {
        "schema": SCHEMA,
        "sbert_train": __version__,
        "base": base,
        "seed": trainer.args.seed,
        "verdict": verdict(found),
        "selected_by": selected,
        "baseline": _metrics(outcome.before),
        "best": _metrics(outcome.best),
        "final": _metrics(outcome.final),
        "deltas": _deltas(outcome.comparison),
        "training": describe_training(trainer),
        "monitors": monitors_of(log),
        "warnings": hide(warnings_of(log)),
        "plan_warnings": hide([asdict(one) for one in plan.warnings]),
        "negatives": [str(one) for one in plan.negatives],
        "data": [
            *_facts("training", plan.examined.train, hide),
            *_facts("evaluation", plan.examined.eval, hide),
        ],
        "evaluation": outcome.comparison.to_json() if outcome.comparison else None,
        "versions": describe_environment(),
    }
    write_json(folder.report, report)
    run = Run(
        name=name,
        report=report,
        findings=found,
        log=log,
        sets=[details_of(task, outcome.before[task.name], outcome.best[task.name]) for task in trainer.tasks],
        lengths=trainer.rows.text_lengths(),
        max_length=trainer.encoder.max_length,
        config=folder.config.read_text(encoding="utf-8"),
    )
    replace_text(folder.page, page(run))


def describe_training(trainer: SentenceTrainer) -> dict[str, Any]:
    """What training took; of all parts of a run together, where it went on after interruptions."""
    args, state, progress = trainer.args, trainer.state, trainer.progress
    seconds = trainer.seconds
    return {
        "steps": state.global_step,
        "epochs": state.epoch,
        "train_runtime": seconds,
        "seconds_to_first_step": trainer.stopwatch.seconds_to_first_step,
        "pairs_per_second": progress.rows / seconds,
        "tokens_per_second": progress.tokens / seconds if progress.tokens else None,
        "input_share": trainer.stopwatch.input_share,
        "device": args.device.type,
        "processes": args.world_size,
        "peak_memory_bytes": progress.peak_memory_bytes or None,
        "mean_loss": progress.loss / max(1, state.global_step),
        "resumed_from": progress.resumed_from,
        "best_step": state.best_global_step if args.load_best_model_at_end else None,
        "best_metric_name": args.metric_for_best_model,
    }


def describe_speed(trainer: SentenceTrainer) -> str:
    """How fast a run was, in a line."""
    watch = trainer.stopwatch
    said = [f"{trainer.progress.rows / trainer.seconds:,.1f} rows a second, evaluations included"]
    if watch.input_share is not None and watch.seconds_to_first_step is not None:
        said.append(f"input took {watch.input_share:.1%} of the steps")
        said.append(f"the first step was done after {watch.seconds_to_first_step:.1f} s")
    return "; ".join(said)


def _facts(use: str, sets: Sequence[SetFacts], hide: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """What is known of each set, but for its texts."""
    found = []
    for one in sets:
        plain = one.to_json()
        account, name = plain.pop("account"), plain.pop("set")
        for left_out in ("key", "samples"):
            del plain[left_out]
        found.append({"set": name, "use": use, **hide(account), **hide(plain)})
    return found


def _metrics(results: Results) -> dict[str, dict[str, float]]:
    return {name: dict(result.metrics) for name, result in results.items()}


def _deltas(comparison: Comparison | None) -> dict[str, dict[str, dict[str, float]]]:
    """Eval set -> metric -> the best model's figure minus the base's, with the interval of that difference."""
    return {
        task.task: {
            metric: {"value": change.value, "low": change.low, "high": change.high}
            for metric, change in task.differences["after"].items()
        }
        for task in (comparison.tasks if comparison else ())
    }
