"""The runs of a table in turn, each in a process of its own; what has a record is not run again."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.machine import ROOT, commit, versions
from benchmarks.speed.budget import Allowance
from benchmarks.speed.encoding import largest_difference
from benchmarks.speed.planning import Machine, plan_cell, this_machine
from benchmarks.speed.record import Plan, Record, Results, append, read_results
from benchmarks.speed.runs import Cell, Measured, Run
from benchmarks.speed.tables import TABLES
from benchmarks.speed.tables.common import name_of

MICRO_TOKENS = {"cpu": 2_048, "cuda": 8_192}
"""Device -> tokens of a micro-batch: about those of the uncached batches of 64 and 256 rows."""

RESULTS, MODELS, MEASURED = "results.jsonl", "models", "measured.json"


@dataclass(frozen=True)
class Queue:
    """Where runs read and write, and what a cell may take."""

    output: Path
    """Folder for models, the files of the run at work, and results.jsonl."""
    data: Path
    """The folder of data sets."""
    budget: float
    """Seconds of training time for a cell, all sides and pairs together."""
    micro_tokens: int | None
    """Tokens of a micro-batch of the gradient cache; None: MICRO_TOKENS."""
    allowance: Allowance = field(default_factory=Allowance)
    """Of the table at work, whose budgets `budget` has in it."""

    @property
    def results(self) -> Path:
        """The lines of what was planned and measured."""
        return self.output / RESULTS

    @property
    def log(self) -> Path:
        """What the last run has printed."""
        return self.output / "last-run.log"

    def run_table(self, table: str) -> int:
        """Fill the cells of a table; how many runs failed."""
        machine, module = this_machine(), TABLES[table]
        cells = module.cells(machine, self.micro_tokens or MICRO_TOKENS[machine.device])
        allowance = module.ALLOWANCE
        own = replace(self, budget=self.budget * allowance.budgets, allowance=allowance)
        plans = [own.plan(cell, machine) for cell in cells]
        for number, planned in enumerate(plans, start=1):
            say(f"{table} {number}/{len(plans)}", told(planned))
        return own.fill(plans)

    def plan(self, cell: Cell, machine: Machine) -> Plan:
        """The plan of a cell, which is kept once any of it has run: pairs of one cell must be alike."""
        results = read_results(self.results)
        before = results.plan_of(cell)
        if before is not None and any(results.of(cell, side) for side in cell.sides):
            return before
        made = plan_cell(
            cell,
            machine,
            results,
            data=self.data,
            cache=self.output / MODELS,
            budget=self.budget,
            allowance=self.allowance,
        )
        if made != before:
            append(self.results, made)
        return made

    def fill(self, plans: Sequence[Plan]) -> int:
        """Run what plans say and has no record: the first pair of every cell, then the second; how many runs failed.

        So cells that are compared are measured side by side, too. A cell is left once its budget is used up, and where
        a run fails: what failed once is likely to fail in the next pair, too.
        """
        left, failed = list(plans), 0
        for pair in range(max((planned.pairs for planned in plans), default=0)):
            for planned in [one for one in left if pair < one.pairs]:
                results = read_results(self.results)
                if self._used_up(planned, pair, results):
                    used = f"its {self.budget:,.0f} s are used up after {pair} of {planned.pairs} pairs"
                    say(f"  {name_of(planned.cell)}: {used}")
                    left.remove(planned)
                    continue
                cell = planned.cell
                runs = [Run(cell, side, pair, planned.rows) for side in in_turn(cell.sides, pair)]
                if not self.run_pair([run for run in runs if results.record_of(run) is None]):
                    left.remove(planned)
                    failed += 1
        return failed

    def _used_up(self, planned: Plan, pair: int, results: Results) -> bool:
        """Whether a pair must not begin any more: the first one always may, and one that has begun is ended."""
        cell = planned.cell
        done = [one for side in cell.sides for one in results.of(cell, side).values()]
        begun = any(one.run.pair == pair for one in done)
        return pair > 0 and not begun and sum(one.measured.seconds for one in done) >= self.budget

    def run_pair(self, runs: Sequence[Run]) -> bool:
        """Run the sides of a pair one after the other; whether all went well."""
        folders = []
        for run in runs:
            folder = self.output / "at-work" / run.side
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            folders.append(folder)
            made, start = commit(), time.perf_counter()
            with self.log.open("w", encoding="utf-8") as log:
                ended = subprocess.run(
                    [sys.executable, *command(run, folder, self.output / MODELS)],
                    cwd=ROOT,
                    check=False,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # A cache of its own: a later run of a pair must not find what an earlier one has tokenised.
                    env=os.environ | {"HF_DATASETS_CACHE": str(folder / "cache")},
                )
            took = time.perf_counter() - start
            if ended.returncode:
                say(
                    f"  {run.side} of pair {run.pair} failed with exit code {ended.returncode}: see {self.log}"
                )
                return False
            measured = Measured.from_json(json.loads((folder / MEASURED).read_text(encoding="utf-8")))
            record = Record(
                run=run,
                measured=measured,
                process_seconds=round(took, 2),
                commit=made,
                versions=versions(),
                date=time.strftime("%F"),
                difference=_difference(folders) if run.cell.table == "encode" else None,
            )
            append(self.results, record)
            say(f"  {name_of(run.cell)} pair {run.pair} {run.side}: {measured.seconds:.2f} s")
        shutil.rmtree(self.output / "at-work", ignore_errors=True)
        return True


def in_turn(sides: Sequence[str], pair: int) -> list[str]:
    """The sides in the order of a pair: each begins as often as the others.

    >>> in_turn(("peer", "ours"), 0), in_turn(("peer", "ours"), 1)
    (['peer', 'ours'], ['ours', 'peer'])
    """
    first = pair % len(sides)
    return [*sides[first:], *sides[:first]]


def command(run: Run, folder: Path, cache: Path) -> list[str]:
    """The arguments after `python` that do one run."""
    asked = ["--run", json.dumps(run.to_json()), "--folder", str(folder), "--cache", str(cache)]
    return ["-m", "benchmarks.speed", "one", *asked]


def told(planned: Plan) -> str:
    """A plan in words."""
    sides = ", ".join(planned.cell.sides)
    what = planned.reason or f"{planned.rows:,} rows, up to {planned.pairs} pairs"
    return f"{name_of(planned.cell)}, {sides}: {what}"


def say(*words: str) -> None:
    """A line with the time."""
    print(time.strftime("%F %T"), *words, flush=True)


def _difference(folders: Sequence[Path]) -> float | None:
    """Of the last embeddings from the first ones of a pair."""
    first, last = (folders[i] / f"{folders[i].name}.npy" for i in (0, -1))
    return largest_difference(first, last) if len(folders) > 1 else None
