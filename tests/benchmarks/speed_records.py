"""Cells, plans and runs that never were."""

from typing import Any

from benchmarks.speed.record import Plan, Record
from benchmarks.speed.runs import OURS, PEER, Cell, Measured, Run

PEAK = 100e9


def cell(table: str = "training", **options: Any) -> Cell:
    """A cell of both sides: all-MiniLM-L6-v2 on SNLI, batch 64, fp32."""
    return Cell(**{"table": table, "sides": (PEER, OURS), "batch": 64, **options})


def record(
    of: Cell,
    side: str,
    pair: int,
    seconds: float,
    *,
    rows: int = 640,
    difference: float | None = None,
    **measured: Any,
) -> Record:
    """A run of 640 rows and 10 tokens a row, 15 with padding and 8 without repeats."""
    run = Run(of, side, pair, rows)
    told = {
        "seconds": seconds,
        "rows_seen": rows,
        "tokens": 10 * rows,
        "padded_tokens": 15 * rows,
        "distinct_tokens": 8 * rows,
        "device": "a processor",
        **measured,
    }
    return Record(
        run=run,
        measured=Measured(**told),
        process_seconds=seconds + 10,
        commit="abc1234",
        versions={"torch": "2.0"},
        date="2026-01-01",
        difference=difference,
    )


def pair_of(of: Cell, pair: int, theirs: float, ours: float, **measured: Any) -> list[Record]:
    """Both sides of a pair, with their seconds."""
    return [record(of, PEER, pair, theirs, **measured), record(of, OURS, pair, ours, **measured)]


def machine_of(precision: str = "fp32", device: str = "cpu") -> Record:
    """A machine that multiplies 100e9 a second at best."""
    of = Cell("hardware", ("machine",), device, "", "", precision=precision)  # type: ignore[arg-type]
    return record(of, "machine", 0, 1.0, rows=0, details={"2x2x2": PEAK / 2, "8x8x8": PEAK})


def plan_of(of: Cell, pairs: int = 3, reason: str = "") -> Plan:
    """A plan of 640 rows, or of nothing for a reason."""
    return Plan(of, rows=0 if reason else 640, pairs=0 if reason else pairs, estimate=1.0, reason=reason)
