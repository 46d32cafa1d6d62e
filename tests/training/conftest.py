"""Runs of tests keep what they cache to themselves; and a run that was killed."""

from pathlib import Path

import datasets
import pytest

from sbert_train.config import RunConfig
from tests.training.interruptions import KEEP_ALL, checkpoints_of, killed_in_step, trained
from tests.training.runs import config


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def killed(tmp_path: Path, tiny_model: Path) -> RunConfig:
    """A run with checkpoints of the steps 2, 4 and 6."""
    settings = config(tmp_path, tiny_model, train=KEEP_ALL)
    with killed_in_step(8):
        trained(settings)
    assert sorted(path.name for path in checkpoints_of(settings).iterdir()) == [
        f"checkpoint-{i}" for i in (2, 4, 6)
    ]
    return settings
