"""Options that several commands have."""

from typing import Annotated

import typer

ConfigOption = Annotated[
    str, typer.Option("--config", help="A YAML file, or the name of a recipe.", metavar="FILE")
]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Values in place of the file's, such as train.learning_rate=1e-5.",
                                     metavar="[KEY=VALUE]...")]  # fmt: skip
