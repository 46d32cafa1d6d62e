"""The stand-in for the folder of data sets."""

from pathlib import Path

import pytest

from tests.benchmarks.standins import write_data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    return write_data(data)
