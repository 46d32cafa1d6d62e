"""One line of JSON for each finished run: figures, cost, and what would be needed to see them again."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


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
