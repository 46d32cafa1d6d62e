"""sbert-train compare."""

import json
from typing import Annotated

import typer


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="The folders of finished runs, two or more.", metavar="RUN RUN ..."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """Show where the configurations of runs differ, and their results, side by side."""
    from rich.console import Console
    from rich.table import Table

    from sbert_train.reporting.runs import compare_runs
    from sbert_train.reporting.runs_table import render
    from sbert_train.training.finished_runs import read_runs

    compared = compare_runs(read_runs(runs))
    if as_json:
        print(json.dumps(compared.to_json(), indent=2))
        return
    console = Console()
    for part in render(compared, console.width):
        console.print(part, soft_wrap=not isinstance(part, Table))
