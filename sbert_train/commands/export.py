"""sbert-train export."""

from pathlib import Path
from typing import Annotated

import typer

from sbert_train.commands.printing import quiet_libraries


def export(
    model: Annotated[str, typer.Argument(help="Folder, Hub id or package://module/folder.")],
    output: Annotated[Path, typer.Option("--output", help="Folder to write.", metavar="DIR")],
    to: Annotated[
        str, typer.Option("--to", help="sentence-transformers, onnx or onnx-int8.")
    ] = "sentence-transformers",
) -> None:
    """Write a model elsewhere, reload it in a fresh process, and compare before saying done."""
    quiet_libraries()
    from sbert_train.export import export_model

    print(export_model(model, output, to=to))
