"""Fixtures of the data room."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbert_train.data.sources import LoadedSet, load_set
from tests.hub import hub

__all__ = ["hub"]

Load = Callable[..., LoadedSet]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """`load_set` in a fresh working directory and with a cache of its own."""
    monkeypatch.chdir(tmp_path)

    def load_here(source: str | Path, **options: Any) -> LoadedSet:
        return load_set("pairs", str(source), cache_dir=tmp_path / "cache", **options)

    return load_here
