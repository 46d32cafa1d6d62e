"""Lines of JSON: what was planned for each cell and what each run measured, all that the page is made of."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed.runs import Cell, Measured, Run


@dataclass(frozen=True)
class Plan:
    """What a cell gets of the budget."""

    cell: Cell
    rows: int
    """Of each run; 0 where nothing is run."""
    pairs: int
    """At most: none is begun once the budget is used up."""
    estimate: float | None
    """Seconds that one step of the slowest side was thought to take (a run, where the table fixes its rows)."""
    reason: str = ""
    """Why nothing is run; empty where something is."""


@dataclass(frozen=True)
class Record:
    """A finished run."""

    run: Run
    measured: Measured
    process_seconds: float
    """From the start of the process to its end, as its parent saw it."""
    commit: str
    versions: Mapping[str, str]
    date: str
    difference: float | None = None
    """The largest, of the embeddings from those of the first side of the pair; None where there are none."""


@dataclass(frozen=True)
class Results:
    """All lines of a file; of several for one cell or run the last counts."""

    plans: Sequence[Plan] = ()
    records: Sequence[Record] = ()

    def plan_of(self, cell: Cell) -> Plan | None:
        """What was planned for a cell."""
        return next((plan for plan in reversed(self.plans) if plan.cell == cell), None)

    def record_of(self, run: Run) -> Record | None:
        """The record of a run."""
        return next((one for one in reversed(self.records) if one.run == run), None)

    def cells(self, table: str, device: str) -> list[Cell]:
        """The planned cells of a table, in the order of planning."""
        found = [p.cell for p in self.plans if (p.cell.table, p.cell.device) == (table, device)]
        return list(dict.fromkeys(found))

    def of(self, cell: Cell, side: str) -> dict[int, Record]:
        """Pair -> record of one side of a cell."""
        return {one.run.pair: one for one in self.records if (one.run.cell, one.run.side) == (cell, side)}

    def devices(self) -> list[str]:
        """cpu and cuda, those of them that there are plans for."""
        return list(dict.fromkeys(plan.cell.device for plan in self.plans))


def read_results(*files: Path) -> Results:
    """All lines of some files; a file that does not exist has none."""
    lines = [
        json.loads(line)
        for file in files
        if file.exists()
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return Results(
        plans=[_plan(line["plan"]) for line in lines if "plan" in line],
        records=[_record(line["record"]) for line in lines if "record" in line],
    )


def append(file: Path, line: Plan | Record) -> None:
    """Add a line, whole or not at all where a run is broken off."""
    kind = "plan" if isinstance(line, Plan) else "record"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({kind: asdict(line)}, ensure_ascii=False) + "\n")


def write_results(file: Path, results: Results) -> None:
    """Write a file anew."""
    file.write_text("", encoding="utf-8")
    lines: Iterable[Plan | Record] = (*results.plans, *results.records)
    for line in lines:
        append(file, line)


def _plan(told: Mapping[str, Any]) -> Plan:
    return Plan(**{**told, "cell": Cell.from_json(told["cell"])})


def _record(told: Mapping[str, Any]) -> Record:
    run, measured = Run.from_json(told["run"]), Measured.from_json(told["measured"])
    return Record(**{**told, "run": run, "measured": measured})
