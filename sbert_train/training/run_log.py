"""What log.jsonl holds, read again."""

import json
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

MONITOR = "monitor_"
"""What the names of monitored figures begin with."""

Entry = dict[str, Any]


def read_log(file: Path) -> list[Entry]:
    """The entries of a log in their order; none where there is no file."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def monitors_of(entries: Sequence[Entry]) -> list[Entry]:
    """{step, epoch, name: figure, ...} of each entry with monitored figures, named without MONITOR; a figure that is
    not finite is None, for JSON has no word for it."""
    return [
        {
            "step": entry["step"],
            "epoch": entry["epoch"],
            **{key.removeprefix(MONITOR): _finite(value) for key, value in entry.items() if _is_monitor(key)},
        }
        for entry in entries
        if any(map(_is_monitor, entry))
    ]


def warnings_of(entries: Sequence[Entry]) -> list[Entry]:
    """{step, warning} of each entry that warns."""
    return [{"step": entry["step"], "warning": entry["warning"]} for entry in entries if "warning" in entry]


def _is_monitor(key: str) -> bool:
    return key.startswith(MONITOR)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value
