"""Other libraries are silent within the block, and as they were after it."""

import logging
import warnings

import datasets
import pytest
from datasets.utils.logging import get_verbosity
from huggingface_hub.utils import logging as hub_logging

from sbert_train.data.quiet import quiet_libraries


@pytest.mark.parametrize("progress", [True, False])
def test_libraries_are_silent_within_the_block_and_as_before_after_it(
    capfd: pytest.CaptureFixture[str], progress: bool
) -> None:
    before = get_verbosity(), hub_logging.get_verbosity()
    with pytest.raises(KeyError), quiet_libraries(progress=progress):
        warnings.warn("from a library", stacklevel=1)
        for name in ("datasets", "huggingface_hub"):
            logging.getLogger(f"{name}.load").error("from a library")
        assert datasets.are_progress_bars_disabled() is not progress
        raise KeyError
    assert (get_verbosity(), hub_logging.get_verbosity()) == before
    assert not datasets.are_progress_bars_disabled()
    assert capfd.readouterr().err == ""


def test_progress_bars_that_the_user_turned_off_stay_off() -> None:
    datasets.disable_progress_bars()
    try:
        with quiet_libraries(progress=True):
            assert datasets.are_progress_bars_disabled()
        with quiet_libraries(progress=False):
            pass
        assert datasets.are_progress_bars_disabled()
    finally:
        datasets.enable_progress_bars()
