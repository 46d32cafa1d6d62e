"""A run's folder: what lies in it, and when a new run may use one that is there already."""

import json
import os
import platform
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any

from sbert_train.errors import ConfigError
from sbert_train.training.checkpoints import (
    MANIFEST,
    Checkpoint,
    begin_stage,
    best_of,
    checkpoint_at,
    clean_up,
    damage,
    list_checkpoints,
    remove,
    seal,
    stage_of,
)
from sbert_train.training.lock import FILE as LOCK

CARD = "README.md"
FIND_LR = ("find_lr.json", "find_lr.svg")
"""What a range test leaves, which a run neither needs nor removes."""
MODEL_FILES = ".model-files.json"
"""Lists what the run wrote to model/, so that a later one removes nothing else."""

_VERSIONS = (
    "sbert-train",
    "torch",
    "transformers",
    "datasets",
    "accelerate",
    "evaluate",
    "scipy",
    "numpy",
    "tokenizers",
)


@dataclass(frozen=True)
class RunFolder:
    """The paths of a run; see the README for what each holds."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def environment(self) -> Path:
        return self.root / "environment.json"

    @property
    def log(self) -> Path:
        return self.root / "log.jsonl"

    @property
    def report(self) -> Path:
        return self.root / "report.json"

    @property
    def page(self) -> Path:
        return self.root / "report.html"

    @property
    def find_lr_values(self) -> Path:
        return self.root / FIND_LR[0]

    @property
    def find_lr_plot(self) -> Path:
        return self.root / FIND_LR[1]

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def model(self) -> Path:
        return self.root / "model"

    def require_ours(self) -> None:
        """Check that this is the folder of a run, an empty one, or one that can be made.

        Raises:
            ConfigError: it is not; the message says why.
        """
        if not self.root.exists():
            self._require_makeable()
        elif not self.root.is_dir():
            raise ConfigError(f"output_dir: {self.root} is a file; name a folder")
        elif not self._is_of_a_run() and not all(map(_is_leftover, self.root.iterdir())):
            raise ConfigError(
                f"output_dir: {self.root} holds files that are not those of a run; choose another folder"
            )

    def require_replaceable(self, config_text: str) -> None:
        """Check that a run with this configuration may begin here without being asked to replace another.

        So it may where nothing was done yet, and where the same configuration is repeated.

        Raises:
            ConfigError: it may not.
        """
        results = (self.log, self.report, self.page, self.model)
        if not list_checkpoints(self.checkpoints) and not any(path.exists() for path in results):
            return
        if not self.config.exists() or self.config.read_text(encoding="utf-8") != config_text:
            raise ConfigError(
                f"output_dir: {self.root} holds a run with another configuration; choose another folder, or pass "
                "--overwrite to replace it"
            )

    def _is_of_a_run(self) -> bool:
        if any((one.path / MANIFEST).is_file() for one in list_checkpoints(self.checkpoints)):
            return True
        try:
            return "sbert-train" in json.loads(self.environment.read_text(encoding="utf-8"))["packages"]
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _require_makeable(self) -> None:
        parent = next(folder for folder in self.root.absolute().parents if folder.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            why = "may not be written to" if parent.is_dir() else "is a file"
            raise ConfigError(
                f"output_dir: {self.root} cannot be made, as {parent} {why}; choose another folder"
            )

    def prepare(self, config_text: str, chosen: Checkpoint | None) -> None:
        """Make the folder that of a run that begins, or goes on from a checkpoint, also one of another run."""
        if chosen is None:
            self.begin(config_text)
        elif chosen.path.parent.resolve() == self.checkpoints.resolve():
            self.go_on(config_text, chosen.step)
        else:
            if wrong := damage(chosen):
                raise ConfigError(f"{chosen.path} is not whole any more: {wrong}")
            self.begin(config_text)
            self.take_over(chosen)

    def place_of(self, chosen: Checkpoint) -> str:
        """Where a checkpoint that was chosen lies now: one of another run was copied."""
        return str(self.checkpoints / chosen.name)

    def begin(self, config_text: str) -> None:
        """Remove what an earlier run wrote here, and write what is known before the first step."""
        for file in (self.log, self.report, self.page):
            file.unlink(missing_ok=True)
        for checkpoint in list_checkpoints(self.checkpoints):
            remove(checkpoint)
        clean_up(self.checkpoints)
        self.remove_empty()
        self._describe(config_text)  # the model stays until there is another

    def remove_empty(self) -> None:
        """Remove the folder of checkpoints, which Trainer makes early, unless it holds something."""
        with suppress(OSError):
            self.checkpoints.rmdir()

    def take_over(self, chosen: Checkpoint) -> Checkpoint:
        """A copy here of a checkpoint of another run, and before it of the best one of then, if that is whole.

        Raises:
            ConfigError: the checkpoint is not whole any more.
        """
        best = checkpoint_at(chosen.path.with_name(f"checkpoint-{best_of(chosen)}"))
        for one in (best, chosen):
            if one is None or (one == best and damage(one) is not None):
                continue
            begin_stage(self.checkpoints, one.step)
            stage = stage_of(self.checkpoints, one.step)
            told = one.read_json(MANIFEST)
            for name in told["files"]:
                shutil.copyfile(one.path / name, stage / name)
            copy = seal(self.checkpoints, one.step)
            if copy.read_json(MANIFEST) != told:
                remove(copy)
                raise ConfigError(f"{one.path} has changed while it was copied; its run may be going on")
        return Checkpoint(self.checkpoints / chosen.name, chosen.step)

    def go_on(self, config_text: str, step: int) -> None:
        """Let a run go on after a step: what it logged after that will be logged again."""
        lines = (
            self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        )
        kept = [line for line in lines if _is_until(line, step)]
        replace_text(self.log, "".join(f"{line}\n" for line in kept))
        self._describe(config_text)

    def _describe(self, config_text: str) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        write_json(self.environment, describe_environment())  # by which the folder is known as that of a run
        replace_text(self.config, config_text)

    def save_model(self, save: Callable[[Path], None]) -> Path | None:
        """Have the model written beside its place, and put it there when it is whole.

        Args:
            save: writes it to the folder that it is given.

        Returns:
            Where what lay in its place is now, if somebody had put something of their own there; else None.
        """
        stage = self.root / ".model.partial"
        shutil.rmtree(stage, ignore_errors=True)
        try:
            save(stage)
            written = [path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file()]
            kept = self._put_model_away()
            write_json(self.root / MODEL_FILES, sorted([*written, CARD]))
            stage.rename(self.model)
            return kept
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def _put_model_away(self) -> Path | None:
        """Remove the model of an earlier run; a folder in which somebody put something else is renamed and stays."""
        is_link = self.model.is_symlink()
        if not self.model.exists() and not is_link:
            return None
        found = {
            path.relative_to(self.model).as_posix()
            for path in self.model.rglob("*")
            if path.is_symlink() or not path.is_dir()
        }
        if not is_link and found <= _names_in(self.root / MODEL_FILES):
            shutil.rmtree(self.model)
            return None
        number = next(i for i in count(1) if not self.root.joinpath(f"model.before-{i}").exists())
        return self.model.rename(self.root / f"model.before-{number}")


def describe_environment() -> dict[str, Any]:
    """Python, machine and package versions."""
    versions = {}
    for package in _VERSIONS:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {"python": platform.python_version(), "machine": platform.platform(), "packages": versions}


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    replace_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def replace_text(path: Path, text: str) -> None:
    """Write a file that is there as it was before, or whole."""
    stage = path.with_name(f".{path.name}.partial")
    try:
        with stage.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        stage.replace(path)
    finally:
        stage.unlink(missing_ok=True)


def _is_leftover(path: Path) -> bool:
    """Whether it is a lock, of a range test, or what a process that was killed had begun to write, or Trainer to
    prepare."""
    if path.name == "checkpoints" and path.is_dir():
        return not any(path.iterdir())
    return path.name in (LOCK, *FIND_LR) or (path.name.startswith(".") and path.name.endswith(".partial"))


def _is_until(line: str, step: int) -> bool:
    """Whether a line of the log is whole, and neither of a later step nor of the end of a training that goes on."""
    try:
        entry = json.loads(line)
        return bool(entry["step"] <= step) and "train_runtime" not in entry
    except (ValueError, KeyError, TypeError):
        return False


def _names_in(file: Path) -> set[str]:
    try:
        return {str(name) for name in json.loads(file.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError):
        return set()
