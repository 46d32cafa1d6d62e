"""A run's folder: what lies in it, and when a new run may use one that is there already."""

import json
import os
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sbert_train.errors import ConfigError

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
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def model(self) -> Path:
        return self.root / "model"

    def require_usable(self, config_text: str, *, overwrite: bool) -> None:
        """Check that a run with this configuration may write here.

        A folder that is new or empty may be used; so may that of a run that ended before its first step, and that of a
        finished run with the same configuration, which is thereby repeated; that of any other run only with
        `overwrite`.

        Raises:
            ConfigError: it may not; the message says why.
        """
        if not self.root.exists():
            self._require_makeable()
            return
        if self.root.is_dir() and not any(self.root.iterdir()):
            return
        if not self.root.is_dir():
            raise ConfigError(f"output_dir: {self.root} is a file; name a folder")
        if not (self.config.is_file() and self.environment.is_file()):
            raise ConfigError(
                f"output_dir: {self.root} holds files that are not those of a run; choose another folder"
            )
        has_checkpoints = self.checkpoints.is_dir() and any(self.checkpoints.iterdir())
        nothing_done = not (has_checkpoints or any(f.exists() for f in (self.log, self.report, self.model)))
        if overwrite or nothing_done:
            return
        if self.config.read_text(encoding="utf-8") != config_text:
            raise ConfigError(
                f"output_dir: {self.root} holds a run with another configuration; choose another folder, or pass "
                "--overwrite to replace it"
            )
        if not self.report.is_file() and has_checkpoints:
            raise ConfigError(
                f"output_dir: {self.root} holds the checkpoints of an unfinished run; choose another folder, or pass "
                "--overwrite to begin it again"
            )

    def _require_makeable(self) -> None:
        parent = next(folder for folder in self.root.absolute().parents if folder.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            why = "may not be written to" if parent.is_dir() else "is a file"
            raise ConfigError(
                f"output_dir: {self.root} cannot be made, as {parent} {why}; choose another folder"
            )

    def begin(self, config_text: str) -> None:
        """Remove what an earlier run wrote here, and write what is known before the first step."""
        for file in (self.log, self.report):
            file.unlink(missing_ok=True)
        for folder in (self.checkpoints, self.model):
            shutil.rmtree(folder, ignore_errors=True)
        self.root.mkdir(parents=True, exist_ok=True)
        self.config.write_text(config_text, encoding="utf-8")
        write_json(self.environment, describe_environment())


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
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
