"""Real processes that are killed at any moment lose nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training import kill_runs


def kill(folder: Path, base: Path, kills: int, seed: int) -> dict[str, object]:
    command = [sys.executable, kill_runs.__file__, str(folder), str(base), str(kills), str(seed)]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(folder / "cache"), "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_killed_runs_end_with_the_same_bytes(tmp_path: Path, tiny_model: Path) -> None:
    found = kill(tmp_path, tiny_model, kills=5, seed=1)
    assert found["different"] == [] and found["kills"] == 5


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_fifty_kills_leave_no_run_with_other_bytes(tmp_path: Path, tiny_model: Path) -> None:
    found = kill(tmp_path, tiny_model, kills=50, seed=2)
    print(found)
    assert found["different"] == [] and found["kills"] == 50
    assert found["killed_while_saving"], "some of them with a checkpoint half written"
