"""Keep the libraries below from talking to our user: what matters is told by an error or by the row account."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import datasets
from datasets.utils.logging import get_verbosity, set_verbosity
from huggingface_hub.utils import logging as hub_logging


@contextmanager
def quiet_libraries(*, progress: bool) -> Iterator[None]:
    """Within the block, `datasets` and `huggingface_hub` log nothing; their errors come as exceptions.

    Args:
        progress: whether `datasets` may show its progress bars; they stay off where the user turned them off.
    """
    levels = get_verbosity(), hub_logging.get_verbosity()
    hide_bars = not progress and not datasets.are_progress_bars_disabled()
    set_verbosity(logging.CRITICAL)
    hub_logging.set_verbosity(logging.CRITICAL)
    if hide_bars:
        datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        set_verbosity(levels[0])
        hub_logging.set_verbosity(levels[1])
        if hide_bars:
            datasets.enable_progress_bars()
