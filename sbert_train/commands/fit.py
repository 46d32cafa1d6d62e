"""sbert-train fit."""

import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sbert_train.commands.options import ConfigOption, Overrides
from sbert_train.commands.printing import print_comparison, quiet_libraries
from sbert_train.errors import CommandError

_STARTED = time.monotonic()
_Seeds = Annotated[
    str | None,
    typer.Option(
        help="Train once with each of these seeds, such as 1,2,3, each in a folder of its own below output_dir, and "
        "tell mean and spread.",
        metavar="SEED,SEED...",
    ),
]


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
    seeds: _Seeds = None,
) -> None:
    """Fine-tune a model, and measure it against the one it came from."""
    chosen = None if seeds is None else _seeds(seeds, overrides or [])
    from sbert_train.config import WrongValues, load_config
    from sbert_train.recipes import find_config

    try:
        settings = load_config(find_config(config), overrides or [])
    except WrongValues as error:
        # At once, for what follows takes some seconds.
        print(f"sbert-train: {error}", file=sys.stderr, flush=True)
        quiet_libraries()
        from sbert_train.training.everything_wrong import what_else_is_wrong

        for line in what_else_is_wrong(error):
            print(line, file=sys.stderr)
        raise typer.Exit(2) from error
    quiet_libraries()
    from sbert_train.training.fit import fit as run

    options: dict[str, Any] = {
        "resume": resume,
        "overwrite": overwrite,
        "strict": strict,
        "allow_changes": allow_changes or [],
        "started": _STARTED,
    }
    if chosen is not None:
        _fit_seeds(settings, chosen, options)
        return
    with settings.hiding_environment():
        result = run(settings, **options)
    if not result.first_process:
        return
    if result.comparison is not None:
        print_comparison(result.comparison, also=result.selected_by)
    _print_next(result.base, result.folder.model)


def _fit_seeds(settings: Any, seeds: Sequence[int], options: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from sbert_train.reporting.seeds_table import render
    from sbert_train.training.seeds import fit_seeds

    with settings.hiding_environment():
        result = fit_seeds(settings, seeds, **options)
    if result.series is None:  # another process prints it
        return
    console = Console()
    for part in render(result.series, console.width):
        console.print(part, soft_wrap=not isinstance(part, Table))
    _print_next_of_series(result)


def _seeds(text: str, overrides: Sequence[str]) -> list[int]:
    """The seeds that --seeds names, where the rest of the command leaves them room."""
    if not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})+", text):
        raise CommandError(f"--seeds {text}: expected two or more whole numbers with commas, such as 1,2,3")
    seeds = [int(number) for number in text.split(",")]
    for number, seed in enumerate(seeds):
        if seed in seeds[:number]:
            raise CommandError(f"--seeds {text}: {seed} is named twice; name each seed once")
        if seed >= 2**32:
            raise CommandError(f"--seeds {text}: expected numbers below 4294967296, found {seed}")
    for override in overrides:
        if override.partition("=")[0] in ("seed", "train.seed", "train.data_seed"):
            raise CommandError(f"{override}: leave it out, as --seeds gives each run its own")
    return seeds


def _print_next_of_series(result: Any) -> None:
    """Which model to use, and how to look at the others."""
    series = result.series
    models = {seed: result.root / run.name / "model" for seed, run in series.runs.items()}
    first = next(iter(models))
    print(f"\nEach seed is a run of its own; the model of seed {first} is in {models[first]}.")
    if series.best_seed is not None:
        print(
            f"That of seed {series.best_seed} is the best by {series.selected_by}; as the best of {len(models)} it"
        )
        print("looks better there than on new data.")
    print("Next:\n")
    print(
        f"  {shlex.join(['sbert-train', 'eval', result.base, *map(str, models.values()), '--data', 'my_pairs.csv'])}"
    )
    print(f"  {shlex.join(['sbert-train', 'compare', *(str(model.parent) for model in models.values())])}")
    _print_uses(models[first if series.best_seed is None else series.best_seed])


def _print_next(base: str, model: Path) -> None:
    """What to do with a new model, in commands that run as they are."""
    print(f"The model is in {model}. Next:\n")
    print(f"  sbert-train eval {base} {model} --data my_pairs.csv")
    _print_uses(model)


def _print_uses(model: Path) -> None:
    from sbert_train.model.read_layout import read_layout

    two_heads = read_layout(model).document_head is not None
    form, place = ("sentence-transformers", "export") if two_heads else ("onnx", "onnx")
    arguments = '["Hello."], role="query"' if two_heads else '["Hello."]'
    print(f"  sbert-train export {model} --to {form} --output {model.parent / place}")
    print(
        f"""  python -c 'from sbert_train import SentenceEncoder as E; print(E.load("{model}").encode({arguments}))'"""
    )
