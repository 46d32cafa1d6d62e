"""The configuration that a command is given, with all that is wrong told at once."""

import sys
from collections.abc import Sequence
from typing import Any

import typer

from sbert_train.commands.printing import quiet_libraries


def load_settings(config: str, overrides: Sequence[str] | None) -> Any:
    """The RunConfig of a file or a recipe; where it has wrong values they are printed, and the command ends with 2."""
    from sbert_train.config import WrongValues, load_config
    from sbert_train.recipes import find_config

    try:
        return load_config(find_config(config), overrides or [])
    except WrongValues as error:
        # At once, for what follows takes some seconds.
        print(f"sbert-train: {error}", file=sys.stderr, flush=True)
        quiet_libraries()
        from sbert_train.training.everything_wrong import what_else_is_wrong

        for line in what_else_is_wrong(error):
            print(line, file=sys.stderr)
        raise typer.Exit(2) from error
