"""What lies in the working directory is data: no command imports a library, a metric or a plug-in from there."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.security.attacks import Marker
from tests.training.runs import config, write_scored

ROOT = Path(__file__).parents[2]
NAMES = (
    *(
        "torch",
        "transformers",
        "datasets",
        "evaluate",
        "numpy",
        "yaml",
        "typer",
        "scipy",
        "sklearn",
        "rich",
        "json",
    ),
    *("pearsonr", "spearmanr", "flash_attn", "kernels", "peft", "tensorboard", "conftest", "sitecustomize"),
)


@pytest.fixture
def trapped(tmp_path: Path, marker: Marker, tiny_model: Path) -> Path:
    """A working directory with data, a configuration, and a module of every name that may be asked for."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(marker.code)
    (folder / "pearsonr").mkdir()
    (folder / "pearsonr" / "pearsonr.py").write_text(marker.code)
    write_scored(folder).rename(folder / "pairs.csv")
    settings = config(tmp_path, tiny_model, train={"max_steps": 1}, output_dir=str(folder / "run"))
    (folder / "run.yaml").write_text(yaml.safe_dump(settings.model_dump(mode="json")))
    # As pip writes the command: Python then looks for modules in the folder of this file, not in the working directory.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sbert-train").write_text("from sbert_train.cli import main\nmain()\n")
    return folder


STARTS: Mapping[str, Callable[[Path], tuple[str | Path, ...]]] = {
    "command": lambda folder: (folder.parent / "bin" / "sbert-train",),
    "module": lambda folder: ("-m", "sbert_train"),
}


def python(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    ours = {"PYTHONPATH": str(ROOT), "HF_HOME": str(folder.parent / "home"), "HF_HUB_OFFLINE": "1"}
    environment = {**ours, "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_traps_work(trapped: Path, marker: Marker) -> None:
    for name in ("torch", "evaluate", "pearsonr.pearsonr"):
        (trapped / "pearsonr.py").unlink(missing_ok=True)
        marker.require_works(partial(python, trapped, "-c", f"import {name}"))


@pytest.mark.parametrize("start", ["command", "module"])
def test_reading_a_configuration_imports_nothing_from_there(
    trapped: Path, marker: Marker, start: str
) -> None:
    done = python(trapped, *STARTS[start](trapped), "fit", "--config", "run.yaml", "sed=1")
    assert done.returncode == 2 and "unknown key" in done.stderr, done.stderr
    assert not marker.left


@pytest.mark.slow
@pytest.mark.parametrize("start", ["command", "module"])
def test_eval_imports_nothing_from_there(trapped: Path, marker: Marker, tiny_model: Path, start: str) -> None:
    done = python(trapped, *STARTS[start](trapped), "eval", tiny_model, "--data", "pairs.csv")
    assert done.returncode == 0, done.stderr
    assert "pearson" in done.stdout or "spearman" in done.stdout
    assert not marker.left


@pytest.mark.slow
def test_fit_imports_nothing_from_there(trapped: Path, marker: Marker) -> None:
    done = python(trapped, trapped.parent / "bin" / "sbert-train", "fit", "--config", "run.yaml")
    assert done.returncode == 0, done.stderr
    assert not marker.left
    (trapped / "run").rename(trapped / "first")
    done = python(trapped, "-m", "sbert_train", "fit", "--config", "run.yaml")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_export_imports_nothing_from_there(trapped: Path, marker: Marker, tiny_model: Path) -> None:
    command = trapped.parent / "bin" / "sbert-train"
    done = python(trapped, command, "export", tiny_model, "--output", "exported")
    assert done.returncode == 0, done.stderr
    assert not marker.left


def test_a_checkout_still_runs_as_a_module() -> None:
    """There the working directory is where the package itself is found."""
    command = [sys.executable, "-m", "sbert_train", "--version"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
