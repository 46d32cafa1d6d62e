"""One line of JSON for each finished run: figures, cost, and what would be needed to see them again."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from sbert_train.model.precision import native_precision

VERSIONS = ("sentence-transformers", "torch", "transformers", "accelerate", "datasets", "numpy")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Record:
    """A finished run."""

    experiment: str
    side: str
    """base (not trained), peer or ours."""
    seed: int | None
    """None for the base."""
    metrics: Mapping[str, float]
    steps: int
    rows_seen: int
    train_seconds: float
    rows_per_second: float | None
    """None for the base."""
    command: str
    commit: str
    versions: Mapping[str, str]
    hardware: str


def read_records(file: Path) -> list[Record]:
    """The records of a file of results; none where there is no file."""
    if not file.exists():
        return []
    return [Record(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def append_record(file: Path, record: Record) -> None:
    """Add a line, whole or not at all where a run is broken off."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(line_of(record))


def line_of(record: Record) -> str:
    """A record as a line of its file."""
    return json.dumps(asdict(record), ensure_ascii=False) + "\n"


def is_recorded(records: Iterable[Record], experiment: str, side: str, seed: int | None) -> bool:
    """Whether this run has been finished."""
    return any((one.experiment, one.side, one.seed) == (experiment, side, seed) for one in records)


def versions() -> dict[str, str]:
    """Distribution -> version, of what decides the figures."""
    return {name: version(name) for name in VERSIONS}


def hardware() -> str:
    """Processor, threads and precision, such as "AMD EPYC, 2 cores, 2 threads, fp32 (without native bf16)"."""
    bf16 = "with" if native_precision(use_cpu=True) == "bf16" else "without"
    threads = torch.get_num_threads()
    return f"{processor()}, {os.cpu_count()} cores, {threads} threads, fp32 ({bf16} native bf16)"


def processor() -> str:
    """Name of the processor, as Linux tells it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return "unknown processor"


def commit() -> str:
    """Short hash of the checkout, with `-dirty` where tracked files were changed; empty outside a checkout."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip()
