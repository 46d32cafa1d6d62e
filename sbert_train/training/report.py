"""What a finished run writes down for programs: report.json."""

from collections.abc import Sequence
from dataclasses import asdict

from sbert_train import __version__
from sbert_train.data.sources import LoadedSet
from sbert_train.evaluation.compare import Comparison
from sbert_train.training.run_folder import RunFolder, write_json
from sbert_train.training.trainer import SentenceTrainer


def write_report(
    folder: RunFolder,
    base: str,
    trainer: SentenceTrainer,
    sets: Sequence[LoadedSet],
    comparison: Comparison | None,
) -> None:
    """Write report.json.

        sbert_train: version     base: the model's base     seed
        training: {steps, epochs, seconds, seconds_to_first_step, rows_per_second, input_share,
                   mean_loss, resumed_from, best_step, best_metric_name}
        data: [{set, read, kept, filtered, limited, dropped: {reason: rows}, kept_with: {reason: rows}}, ...]
        evaluation: Comparison.to_json() of the models "before" and "after"; null without eval sets

    seconds are those from the first step to the last, with evaluations and checkpoints; rows_per_second are over
    them. Where the run went on after interruptions (resumed_from: [steps]), these, mean_loss and input_share are of all
    its parts together. seconds_to_first_step are those from the first command to the end of its first optimizer step;
    input_share is that of `Stopwatch`, of the first process. best_step is null when the last model was kept.
    """
    args, state = trainer.args, trainer.state
    write_json(
        folder.report,
        {
            "sbert_train": __version__,
            "base": base,
            "seed": args.seed,
            "training": {
                "steps": state.global_step,
                "epochs": state.epoch,
                "seconds": trainer.seconds,
                "seconds_to_first_step": trainer.stopwatch.seconds_to_first_step,
                "rows_per_second": trainer.progress.rows / trainer.seconds,
                "input_share": trainer.stopwatch.input_share,
                "mean_loss": trainer.progress.loss / max(1, state.global_step),
                "resumed_from": trainer.progress.resumed_from,
                "best_step": state.best_global_step if args.load_best_model_at_end else None,
                "best_metric_name": args.metric_for_best_model,
            },
            "data": [{"set": one.name, **asdict(one.account)} for one in sets],
            "evaluation": comparison.to_json() if comparison else None,
        },
    )


def describe_speed(trainer: SentenceTrainer) -> str:
    """How fast a run was, in a line."""
    watch = trainer.stopwatch
    said = [f"{trainer.progress.rows / trainer.seconds:,.1f} rows a second, evaluations included"]
    if watch.input_share is not None and watch.seconds_to_first_step is not None:
        said.append(f"input took {watch.input_share:.1%} of the steps")
        said.append(f"the first step was done after {watch.seconds_to_first_step:.1f} s")
    return "; ".join(said)
