"""sbert-train fit --find-lr."""

import shlex
from typing import Annotated, Any

import typer

FindLr = Annotated[
    bool,
    typer.Option(
        "--find-lr",
        help="Train nothing: try growing learning rates for 100 steps, suggest one, and write find_lr.json and "
        "find_lr.svg to output_dir.",
    ),
]


def find_learning_rate(settings: Any, config: str, overrides: list[str]) -> None:
    """Try learning rates, and print what came of it."""
    from sbert_train.training import find_lr

    with settings.hiding_environment():
        found = find_lr.find_lr(settings)
        others = [one for one in overrides if not one.startswith("train.learning_rate=")]
        if found.first_process:
            print("\n".join(find_lr.summary(found, shlex.join([str(config), *others]))))
