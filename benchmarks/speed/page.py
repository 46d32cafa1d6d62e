"""Results -> the page that people read, and the plots beside it."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.speed.bars import bars
from benchmarks.speed.chart import svg
from benchmarks.speed.record import Record, Results
from benchmarks.speed.runs import SEED, Cell
from benchmarks.speed.tables import TABLES, curves

_TIMES = ", ".join(
    f"{name} {table.ALLOWANCE.budgets} times" for name, table in TABLES.items() if table.ALLOWANCE.budgets > 1
)
_INTRODUCTION = f"""\
# Speed beside sentence-transformers

sentence-transformers ("the peer") and sbert-train train on the same rows with the same settings, and encode the same
texts; each run is a process of its own, the sides take turns, and which of them begins changes from pair to pair. Seed
{SEED}. What the same training learns on either side is in [QUALITY.md](QUALITY.md).

This page is written from `benchmarks/speed/results.jsonl` by `python -m benchmarks.speed page`. `make bench` measures
all tables, or what runs/bench lacks of them, and writes it. `python -m benchmarks.speed TABLE --output RUNS` measures
one of {", ".join(TABLES)}, or what RUNS lacks of it, and
`python -m benchmarks.speed page --take RUNS` puts it on this page. A line of a table gets
120 seconds of training time, or what `--budget` says, over all its runs
(more in some tables: {_TIMES}); how many steps and pairs of runs it
has follows from that. The data sets are those of `benchmarks/data.py`, in the folder that `SBERT_TRAIN_DATA` names.
"""

DEVICES = {"cpu": "On the CPU", "cuda": "On the GPU"}


def write_page(results: Results, to: Path) -> None:
    """Write the page, and beside it a plot for each device that there are curves of."""
    to.write_text(page(results), encoding="utf-8")
    for device in results.devices():
        panels = curves.panels(results, device)
        if any(panel.lines for panel in panels):
            (to.parent / curves.figure_name(device)).write_text(svg(panels), encoding="utf-8")


def page(results: Results) -> str:
    """The page, in Markdown; a table of which nothing was planned is left out."""
    parts = [_INTRODUCTION]
    for device in results.devices():
        parts.append(f"## {DEVICES[device]}\n\n{provenance(_on(results.records, device))}")
        parts.append(bars(results, device))
        parts += [
            table.section(results, device) for name, table in TABLES.items() if results.cells(name, device)
        ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def provenance(records: Iterable[Record]) -> str:
    """Device, commit, versions and days of the runs, and which tables had them."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for one in records:
        told = ", ".join(f"{name} {version}" for name, version in one.versions.items())
        groups.setdefault((one.measured.device, one.commit, told), []).append(one)
    lines = []
    for (device, commit, versions), own in groups.items():
        tables = ", ".join(dict.fromkeys(one.run.cell.table for one in own))
        days = " to ".join(dict.fromkeys((min(one.date for one in own), max(one.date for one in own))))
        lines.append(f"- {device}; commit {commit}; {versions}; {days}: {tables} ({len(own)} runs)\n")
    return "".join(lines)


def merged(old: Results, new: Results) -> Results:
    """New results in the place of the old ones of the same table and device; the others stay.

    Old ones of another machine go: shares of the peak would be of the wrong one.
    """
    replaced = {(plan.cell.table, plan.cell.device) for plan in new.plans}
    machines = {one.run.cell.device: one.measured.device for one in new.records}
    gone = {
        (one.run.cell.table, one.run.cell.device)
        for one in old.records
        if machines.get(one.run.cell.device, one.measured.device) != one.measured.device
    }

    def stays(cell: Cell) -> bool:
        return (cell.table, cell.device) not in replaced | gone

    return Results(
        plans=[*(plan for plan in old.plans if stays(plan.cell)), *new.plans],
        records=[*(one for one in old.records if stays(one.run.cell)), *new.records],
    )


def _on(records: Iterable[Record], device: str) -> list[Record]:
    return [one for one in records if one.run.cell.device == device]
