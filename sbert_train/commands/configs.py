"""sbert-train configs."""

from pathlib import Path
from typing import Annotated

import typer

configs = typer.Typer(help="The recipes that ship with the package.", no_args_is_help=True)


@configs.command(name="list")
def list_configs() -> None:
    """List the recipes."""
    from sbert_train.recipes import list_recipes

    recipes = list_recipes()
    width = max(len(name) for name, _ in recipes)
    for name, summary in recipes:
        print(f"{name:{width}}  {summary}")


@configs.command(name="show")
def show_config(name: Annotated[str, typer.Argument(help="Name of a recipe.")]) -> None:
    """Print a recipe."""
    from sbert_train.recipes import show_recipe

    print(show_recipe(name), end="")


@configs.command(name="copy")
def copy_config(
    name: Annotated[str, typer.Argument(help="Name of a recipe.")],
    destination: Annotated[Path, typer.Argument(help="File or folder to copy it to.")] = Path(),
) -> None:
    """Copy a recipe, to be made your own."""
    from sbert_train.recipes import copy_recipe

    print(copy_recipe(name, destination))
