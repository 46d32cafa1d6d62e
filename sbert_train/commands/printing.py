"""What several commands print, and what they keep from being printed."""

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
