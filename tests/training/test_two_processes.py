"""Several processes save, stop and go on together."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sbert_train.config import RunConfig, dump_config
from tests.training import stopped_worker
from tests.training.interruptions import EVERY_TWO, moved, weights_of
from tests.training.runs import config


def torchrun(
    settings: RunConfig, *program: str, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """A run of two processes on the CPU."""
    folder = Path(settings.output_dir).parent
    file = folder / f"{Path(settings.output_dir).name}.yaml"
    file.write_text(dump_config(settings))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(folder / "cache"), "PYTHONPATH": str(Path.cwd())}
    arguments = [*command, *program, "fit", "--config", str(file), *options]
    return subprocess.run(
        arguments, env=environment, capture_output=True, text=True, timeout=280, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_when_one_process_is_told_to_stop_all_are_saved_and_go_on(tmp_path: Path, tiny_model: Path) -> None:
    train = {**EVERY_TWO, "save_steps": 3, "eval_strategy": "steps", "eval_steps": 3, "num_train_epochs": 3}
    settings = config(tmp_path, tiny_model, train=train)
    whole = torchrun(settings, "-m", "sbert_train")
    assert whole.returncode == 0, whole.stderr[-3000:]

    stopped = moved(settings, tmp_path / "stopped")
    told = torchrun(stopped, stopped_worker.__file__)
    assert told.returncode != 0
    assert "stopped by SIGTERM after step 4 of 9, which is saved in" in told.stderr, told.stderr[-3000:]
    saved = tmp_path / "stopped" / "checkpoints" / "checkpoint-4"
    assert {"rng_state_0.pth", "rng_state_1.pth"} <= set(
        json.loads((saved / "manifest.json").read_text())["files"]
    )

    resumed = torchrun(stopped, "-m", "sbert_train")
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert resumed.stdout.count("resume     from step 4") == 1
    assert weights_of(tmp_path / "stopped" / "model") == weights_of(tmp_path / "run" / "model")

    alone = subprocess.run(
        [sys.executable, "-m", "sbert_train", "fit", "--config", str(tmp_path / "stopped.yaml")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert alone.returncode == 2 and "processes: 2 in checkpoint-9, 1 now" in alone.stderr
