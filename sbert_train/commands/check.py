"""sbert-train check."""

import json
import shlex
import sys
from typing import Annotated

import typer

from sbert_train.commands.options import ConfigOption, Overrides
from sbert_train.commands.printing import quiet_libraries
from sbert_train.commands.settings import load_settings
from sbert_train.streams import silently


def check(
    config: ConfigOption,
    overrides: Overrides = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Train two steps that are thrown away, to tell the time and the memory of the run, and the largest "
            "batch that fits.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 2 where there is a warning.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of lines.")] = False,
) -> None:
    """Look at everything that can be known before the first step; nothing is trained or written."""
    settings = load_settings(config, overrides)
    quiet_libraries()
    from sbert_train.training.check import check as run

    with settings.hiding_environment():
        found = run(settings, measuring=measure, say=silently if as_json else print)
    if not found.first_process:
        return
    if as_json:
        print(json.dumps(settings.hidden(found.to_json()), indent=2))
    count = len(found.warnings)
    told = f"{count} warning{'' if count == 1 else 's'}"
    if strict and count:
        print(f"sbert-train: {told}, and --strict is given", file=sys.stderr)
        raise typer.Exit(2)
    if not as_json:
        print(
            f"{told}; begin with: {shlex.join(['sbert-train', 'fit', '--config', config, *(overrides or [])])}"
        )
