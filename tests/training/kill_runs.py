"""Runs in processes of their own that are killed at random moments and started again, until each has ended.

    python tests/training/kill_runs.py FOLDER BASE KILLS SEED

prints one JSON object: {"kills", "killed_while_saving", "runs", "different": [runs whose weights are not those of a run
that nobody killed]}. Processes are forked from one that has imported everything, so that they die at work and not while
they import.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from sbert_train.config import RunConfig
from sbert_train.training.fit import fit
from tests.training.interruptions import moved, stopping_early, weights_of
from tests.training.runs import config

KILLS_OF_A_RUN = 8


def settings_of(folder: Path, base: Path) -> RunConfig:
    """A run with most of what has a state, saved at each step, so that often a checkpoint is half written."""
    blocks = stopping_early(folder, save_steps=1, eval_steps=1, early_stopping_patience=4, save_total_limit=2)
    model: dict[str, Any] = {"base": str(base), "head": {"dim": 16, "dropout": 0.1}}
    return config(folder, base, **blocks, model=model)


def start(settings: RunConfig) -> int:
    """The number of a new process with this run."""
    child = os.fork()
    if child:
        return child
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
            fit(settings, say=lambda line: None)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(process: int, seconds: float) -> bool:
    """Whether the process ends within this time by itself; it must not fail."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            assert status == 0, f"the run failed: {status}"
            return True
        time.sleep(0.001)
    return False


def main(folder: Path, base: Path, kills: int, seed: int) -> None:
    """See above."""
    rng = random.Random(seed)
    settings = settings_of(folder, base)
    began = time.monotonic()
    assert ended(start(settings), 300)
    duration = time.monotonic() - began
    expected = weights_of(Path(settings.output_dir) / "model")
    killed = saving = runs = 0
    different: list[str] = []
    while killed < kills:
        run = moved(settings, folder / f"run-{runs}")
        process, left = start(run), min(KILLS_OF_A_RUN, kills - killed)
        while left and not ended(process, rng.uniform(0.05, 0.8 * duration)):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            killed, left = killed + 1, left - 1
            saving += any(Path(run.output_dir).glob("checkpoints/.partial-*"))
            process = start(run)
        assert left or ended(process, 300)
        if weights_of(Path(run.output_dir) / "model") != expected:
            different.append(run.output_dir)
        runs += 1
    print(json.dumps({"kills": killed, "killed_while_saving": saving, "runs": runs, "different": different}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
