"""sbert-train fit --seeds."""

import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sbert_train.commands.printing import print_uses
from sbert_train.errors import CommandError

Seeds = Annotated[
    str | None,
    typer.Option(
        help="Train once with each of these seeds, such as 1,2,3, each in a folder of its own below output_dir, and "
        "tell mean and spread.",
        metavar="SEED,SEED...",
    ),
]


def seeds_of(text: str, overrides: Sequence[str]) -> list[int]:
    """The seeds that --seeds names, where the rest of the command leaves them room."""
    if not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})+", text):
        raise CommandError(
            f"--seeds {shlex.quote(text)}: expected two or more whole numbers with commas, such as 1,2,3"
        )
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


def fit_seeds(settings: Any, seeds: Sequence[int], options: dict[str, Any]) -> None:
    """Train with each seed, and print the table of all of them; options are those of `training.seeds.fit_seeds`."""
    from rich.console import Console
    from rich.table import Table

    from sbert_train.reporting.seeds_table import render
    from sbert_train.training.seeds import fit_seeds as run

    with settings.hiding_environment():
        result = run(settings, seeds, **options)
    if result.series is None:  # another process prints it
        return
    console = Console()
    for part in render(result.series, console.width):
        console.print(part, soft_wrap=not isinstance(part, Table))
    _print_next_of_series(result)


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
    print_uses(models[first if series.best_seed is None else series.best_seed])
