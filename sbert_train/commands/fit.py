"""sbert-train fit."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sbert_train.commands.find_lr import FindLr, find_learning_rate
from sbert_train.commands.options import ConfigOption, Overrides
from sbert_train.commands.printing import print_comparison, print_uses, quiet_libraries
from sbert_train.commands.seeds import Seeds, fit_seeds, seeds_of
from sbert_train.commands.settings import load_settings
from sbert_train.errors import CommandError

_STARTED = time.monotonic()


def fit(
    config: ConfigOption,
    overrides: Overrides = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Begin anew, also in place of a run with another configuration in the same output_dir.",
        ),
    ] = False,
    resume: Annotated[
        str,
        typer.Option(
            help="auto: go on from the newest whole checkpoint in output_dir, if there is one. never: from the "
            "beginning. Or the path of a checkpoint.",
            metavar="auto|never|PATH",
        ),
    ] = "auto",
    strict: Annotated[
        bool, typer.Option("--strict", help="A damaged checkpoint is an error; else an older one is taken.")
    ] = False,
    allow_changes: Annotated[
        list[str] | None,
        typer.Option(
            help="A key that may have another value than in the checkpoint, such as train.num_train_epochs; "
            "repeatable.",
            metavar="KEY",
        ),
    ] = None,
    find_lr: FindLr = False,
    seeds: Seeds = None,
) -> None:
    """Fine-tune a model, and measure it against the one it came from."""
    if find_lr and (overwrite or strict or allow_changes or resume != "auto" or seeds):
        raise CommandError(
            "--find-lr trains nothing, so that it takes none of --overwrite, --resume, --strict, --allow-changes and "
            "--seeds; leave them out"
        )
    several = None if seeds is None else seeds_of(seeds, overrides or [])
    settings = load_settings(config, overrides)
    quiet_libraries()
    if find_lr:
        find_learning_rate(settings, config, overrides or [])
        return
    options: dict[str, Any] = {
        "resume": resume,
        "overwrite": overwrite,
        "strict": strict,
        "allow_changes": allow_changes or [],
        "started": _STARTED,
    }
    if several is not None:
        fit_seeds(settings, several, options)
        return
    from sbert_train.training.fit import fit as run

    with settings.hiding_environment():
        result = run(settings, **options)
    if not result.first_process:
        return
    from sbert_train.reporting.verdict import findings, verdict

    if result.comparison is not None:
        print_comparison(result.comparison, also=result.selected_by)
    print(f"\n{verdict(findings(result.comparison, result.selected_by))}\n")
    print(f"The report of the run is {result.folder.page}.")
    _print_next(result.base, result.folder.model)


def _print_next(base: str, model: Path) -> None:
    """What to do with a new model, in commands that run as they are."""
    print(f"The model is in {model}. Next:\n")
    print(f"  {shlex.join(['sbert-train', 'eval', base, str(model), '--data', 'my_pairs.csv'])}")
    print_uses(model)
