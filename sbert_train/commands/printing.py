"""What several commands print, and what they keep from being printed."""

import json
import shlex
from pathlib import Path
from typing import Any

from rich.console import Console


def print_comparison(comparison: Any, *, all_metrics: bool = False, also: str | None = None) -> None:
    """A comparison of models as a table."""
    from sbert_train.evaluation.table import render

    Console().print(render(comparison, all_metrics=all_metrics, also=also))


def quiet_libraries() -> None:
    """Our own lines say what happens; the libraries' bars and notes do not interleave with them."""
    import datasets
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.set_verbosity_error()


def print_uses(model: Path) -> None:
    """What a new model can be used for, in commands that run as they are."""
    from sbert_train.model.read_layout import read_layout

    two_heads = read_layout(model).document_head is not None
    form, place = ("sentence-transformers", "export") if two_heads else ("onnx", "onnx")
    arguments = '["Hello."], role="query"' if two_heads else '["Hello."]'
    export = ["sbert-train", "export", str(model), "--to", form, "--output", str(model.parent / place)]
    load = f"from sbert_train import SentenceEncoder as E; print(E.load({json.dumps(str(model))}).encode({arguments}))"
    print(f"  {shlex.join(export)}")
    print(f"  python -c {shlex.quote(load)}")
