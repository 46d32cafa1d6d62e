"""Sides take turns, what is recorded is not run again, and a cell ends with its budget."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.machine import ROOT
from benchmarks.speed import queue as queues
from benchmarks.speed.__main__ import TABLE_NAMES, main, parser
from benchmarks.speed.planning import Machine
from benchmarks.speed.queue import Queue, in_turn
from benchmarks.speed.record import Plan, Results, append, read_results, write_results
from benchmarks.speed.runs import OURS, PEER, PEER_FLASH, Cell, Measured, Run
from benchmarks.speed.tables import TABLES
from tests.benchmarks.speed_records import cell, pair_of, plan_of, record

PLAIN = Machine(device="cpu", bf16=False, flash=False)


class Processes:
    """Stands in for `subprocess.run`: every run takes 40 s of training, and those of `fails` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: Sequence[tuple[str, int]] = ()) -> None:
        self.runs: list[Run] = []
        self.environments: list[dict[str, str]] = []
        self.fails = fails
        monkeypatch.setattr(queues.subprocess, "run", self)  # type: ignore[attr-defined]
        monkeypatch.setattr(queues, "commit", lambda: "abc1234")

    def __call__(self, arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        args = parser().parse_args(list(arguments[3:]))
        assert (list(arguments[1:3]), args.command) == (["-m", "benchmarks.speed"], "one")
        run = Run.from_json(json.loads(args.run))
        self.runs.append(run)
        self.environments.append(options["env"])
        if (run.side, run.pair) in self.fails:
            return subprocess.CompletedProcess(list(arguments), returncode=1)
        measured = Measured(seconds=40.0, rows_seen=run.rows, tokens=run.rows)
        (args.folder / queues.MEASURED).write_text(json.dumps(asdict(measured)), encoding="utf-8")
        np.save(args.folder / f"{run.side}.npy", np.full((2, 3), 0.5 if run.side == OURS else 0.25))
        return subprocess.CompletedProcess(list(arguments), returncode=0)

    @property
    def turns(self) -> list[tuple[str, int]]:
        return [(run.side, run.pair) for run in self.runs]


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    (tmp_path / "runs").mkdir()
    return Queue(tmp_path / "runs", tmp_path / "data", budget=1000.0, micro_tokens=4096)


def test_each_side_begins_as_often_as_the_others() -> None:
    sides = (PEER, PEER_FLASH, OURS)
    assert [in_turn(sides, pair)[0] for pair in range(6)] == [*sides, *sides]
    assert all(sorted(in_turn(sides, pair)) == sorted(sides) for pair in range(6))


def test_the_order_within_a_pair_swaps(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Processes(monkeypatch)
    assert queue.fill([plan_of(cell(), pairs=3)]) == 0
    assert ran.turns == [(PEER, 0), (OURS, 0), (OURS, 1), (PEER, 1), (PEER, 2), (OURS, 2)]
    assert {run.rows for run in ran.runs} == {640}
    caches = {environment["HF_DATASETS_CACHE"] for environment in ran.environments}
    assert all(str(queue.output) in cache for cache in caches), "no run finds what another has tokenised"
    found = read_results(queue.results)
    assert [one.run for one in found.records] == ran.runs
    assert {one.commit for one in found.records} == {"abc1234"}


def test_what_is_recorded_is_not_run_again(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in [*pair_of(cell(), 0, 30.0, 10.0), record(cell(), OURS, 1, 10.0)]:
        append(queue.results, one)
    ran = Processes(monkeypatch)
    queue.fill([plan_of(cell(), pairs=3)])
    assert ran.turns == [(PEER, 1), (PEER, 2), (OURS, 2)]


def test_no_pair_is_begun_once_the_budget_is_used_up(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Processes(monkeypatch)
    Queue(queue.output, tmp_path, budget=100.0, micro_tokens=4096).fill([plan_of(cell(), pairs=5)])
    # After one pair 80 s are used, after two 160 s.
    assert ran.turns == [(PEER, 0), (OURS, 0), (OURS, 1), (PEER, 1)]
    assert "minilm snli batch 64 fp32: its 100 s are used up after 2 of 5 pairs" in capsys.readouterr().out


def test_a_pair_that_was_begun_is_ended_whatever_the_budget(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in [*pair_of(cell(), 0, 80.0, 80.0), record(cell(), OURS, 1, 10.0)]:
        append(queue.results, one)
    ran = Processes(monkeypatch)
    Queue(queue.output, tmp_path, budget=100.0, micro_tokens=4096).fill([plan_of(cell(), pairs=5)])
    assert ran.turns == [(PEER, 1)]


def test_a_cell_is_left_where_a_run_fails_and_the_queue_goes_on(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Processes(monkeypatch, fails=[(OURS, 0)])
    assert queue.fill([plan_of(cell(), pairs=3)]) == 1
    assert queue.fill([plan_of(cell(batch=32), pairs=1)]) == 1
    assert [(run.cell.batch, run.side) for run in ran.runs] == [
        (64, PEER),
        (64, OURS),
        (32, PEER),
        (32, OURS),
    ]
    assert "ours of pair 0 failed with exit code 1: see" in capsys.readouterr().out
    assert [one.run.side for one in read_results(queue.results).records] == [PEER, PEER]


def test_cells_take_turns_pair_by_pair(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Processes(monkeypatch)
    assert (
        queue.fill(
            [plan_of(cell(), pairs=2), plan_of(cell(batch=32), pairs=3), plan_of(cell(batch=8), pairs=0)]
        )
        == 0
    )
    assert [(run.cell.batch, run.pair) for run in ran.runs[::2]] == [
        (64, 0),
        (32, 0),
        (64, 1),
        (32, 1),
        (32, 2),
    ]


def test_a_table_is_filled_with_the_budgets_that_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, budgets = Processes(monkeypatch), []

    def plan_cell(of: Cell, *_: Any, budget: float, **__: Any) -> Plan:
        budgets.append(budget)
        return plan_of(of, pairs=1, reason="not measured: no native bf16" if of.precision == "bf16" else "")

    monkeypatch.setattr(queues, "plan_cell", plan_cell)
    monkeypatch.setattr(queues, "this_machine", lambda: PLAIN)
    output = tmp_path / "runs"
    output.mkdir()
    assert Queue(output, tmp_path, budget=10.0, micro_tokens=64).run_table("encode") == 0
    assert budgets == [30.0, 30.0] and TABLES["encode"].ALLOWANCE.budgets == 3
    assert ran.turns == [(PEER, 0), (OURS, 0)]
    assert [plan.reason for plan in read_results(output / queues.RESULTS).plans] == [
        "",
        "not measured: no native bf16",
    ]


def test_the_embeddings_of_a_pair_are_compared(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    Processes(monkeypatch)
    queue.fill([plan_of(cell("encode", batch=0), pairs=1)])
    assert [one.difference for one in read_results(queue.results).records] == [None, 0.25]


def test_a_plan_is_kept_once_a_run_of_it_is_recorded_and_made_anew_before(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [plan_of(cell(), pairs=1), plan_of(cell(), pairs=2), plan_of(cell(), pairs=3)]
    monkeypatch.setattr(queues, "plan_cell", lambda *_, **__: made.pop(0))
    assert [queue.plan(cell(), PLAIN).pairs for _ in range(2)] == [1, 2]
    append(queue.results, record(cell(), PEER, 0, 1.0))
    assert queue.plan(cell(), PLAIN).pairs == 2 and len(made) == 1


def test_lines_come_back_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    assert read_results(file) == Results(plans=[], records=[])
    one = record(cell(rows=640), OURS, 1, 1 / 3, step_seconds=(0.5, 0.25), losses=(1.0,), details={"a": 1})
    kept = Results(plans=[plan_of(cell()), plan_of(cell(batch=1), reason="no")], records=[one])
    write_results(file, kept)
    write_results(file, kept)
    assert read_results(file) == kept
    assert read_results(file).record_of(one.run) == one


def test_the_last_line_of_a_run_or_a_cell_counts() -> None:
    results = Results(
        plans=[plan_of(cell(), pairs=1), plan_of(cell(), pairs=2)],
        records=[record(cell(), OURS, 0, 9.0), record(cell(), OURS, 0, 3.0)],
    )
    found = results.plan_of(cell())
    assert found is not None and found.pairs == 2
    assert results.of(cell(), OURS)[0].measured.seconds == 3.0
    assert results.cells("training", "cpu") == [cell()]


def test_cells_that_differ_in_one_setting_do_not_share_records() -> None:
    others = [cell(micro_tokens=4096), cell(device="cuda"), cell(dropout=False), cell(precision="bf16")]
    results = Results(records=[record(cell(), OURS, 0, 1.0)])
    assert results.of(cell(), OURS) and not any(results.of(other, OURS) for other in others)
    assert Cell.from_json(json.loads(json.dumps(asdict(others[0])))) == others[0]


def test_the_clock_of_a_process_starts_before_torch_is_loaded() -> None:
    """Whatever of the package comes first: imports are most of a start."""
    script = (
        "import sys, benchmarks.speed; "
        "assert 'benchmarks.speed.started' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_the_command_line_has_every_table() -> None:
    assert list(TABLE_NAMES) == list(TABLES)
    for name in (*TABLES, "all"):
        args = parser().parse_args([name, "--output", "RUNS", "--budget", "7", "--micro-tokens", "9"])
        assert (args.command, args.budget, args.micro_tokens) == (name, 7.0, 9)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["training", "--output", "RUNS"], "SBERT_TRAIN_DATA names no folder"),
        (["page", "--results", "nowhere.jsonl"], "nowhere.jsonl: there are no results"),
        (["page", "--take", "nowhere"], "nowhere/results.jsonl: there are no results"),
    ],
)
def test_what_the_command_line_lacks_is_told(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SBERT_TRAIN_DATA", raising=False)
    monkeypatch.setattr("sys.argv", ["speed", *arguments])
    with pytest.raises(SystemExit, match=complaint):
        main()
