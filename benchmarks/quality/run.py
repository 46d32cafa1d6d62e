"""One run from data to record, and a queue of them."""

import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT, commit, hardware, versions
from benchmarks.quality.experiments import BASE, EXPERIMENTS
from benchmarks.quality.record import Record, append_record, is_recorded, read_records
from benchmarks.quality.score import OF_A_CLASSIFIER, figures
from benchmarks.queues import only_queue

RESULTS = "results.jsonl"

Run = tuple[str, str, int | None]
"""Experiment, side and seed; the base has no seed."""


def run(
    experiment: str, side: str, seed: int | None, data: Path, output: Path, steps: int | None = None
) -> Record:
    """Train one side of an experiment, judge it and, unless only some steps were asked for, record it.

    The trained model is in output/EXPERIMENT-SIDE-SEED, the record is the last line of output/results.jsonl.
    """
    name = "-".join([experiment, side] + ([] if seed is None else [str(seed)]))
    folder = output / (name if steps is None else f"{name}-steps{steps}")
    folder.mkdir(parents=True, exist_ok=True)
    made = commit()  # before training: the checkout may move on meanwhile
    spec = EXPERIMENTS[experiment]
    cost: dict[str, Any] = {"steps": 0, "rows_seen": 0, "train_seconds": 0.0, "rows_per_second": None}
    if side == "base":
        found = figures(BASE, [name for name in spec.figures if name not in OF_A_CLASSIFIER], data)
    else:
        # Each side is imported alone, so that none changes what the other runs with.
        if side == "peer":
            from benchmarks.quality.peer import train
        else:
            from benchmarks.quality.ours import train
        assert seed is not None
        trained = train(spec, spec.rows(data), seed, folder, steps)
        found = figures(str(trained.model), spec.figures, data, trained.classifier)
        cost = {
            "steps": trained.steps,
            "rows_seen": trained.rows_seen,
            "train_seconds": round(trained.seconds, 1),
            "rows_per_second": round(trained.rows_seen / trained.seconds, 2),
        }
    record = Record(
        experiment=experiment,
        side=side,
        seed=seed,
        metrics=found,
        **cost,
        command=" ".join(["python", *command((experiment, side, seed), "RUNS")]),
        commit=made,
        versions=versions(),
        hardware=hardware(),
    )
    if steps is None:
        append_record(output / RESULTS, record)
    return record


def command(one: Run, output: str) -> list[str]:
    """The arguments after `python` that do one run."""
    experiment, side, seed = one
    chosen = ["--experiment", experiment, "--side", side] + ([] if seed is None else ["--seed", str(seed)])
    return ["-m", "benchmarks.quality", "run", *chosen, "--output", output]


def runs_of(experiments: Sequence[str], sides: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """The base once for each experiment, then seed by seed all experiments that a side trains, then the next side."""
    trained = [side for side in sides if side != "base"]
    runs: list[Run] = [(experiment, "base", None) for experiment in experiments if "base" in sides]
    runs += [
        (experiment, side, seed)
        for side in trained
        for seed in seeds
        for experiment in experiments
        if side in EXPERIMENTS[experiment].sides
    ]
    return runs


def run_queue(runs: Sequence[Run], output: Path) -> int:
    """Do in turn what has no record yet, each run in a process of its own; the number of those that failed.

    A queue that was broken off goes on where it was; a run that fails does not keep the next from its turn.
    """
    failed = 0
    with only_queue(output):
        for number, one in enumerate(runs, start=1):
            if is_recorded(read_records(output / RESULTS), *one):
                continue
            start = time.monotonic()
            print(f"{time.strftime('%F %T')} {number}/{len(runs)}", *one, flush=True)
            ended = subprocess.run([sys.executable, *command(one, str(output))], cwd=ROOT, check=False)
            took = timedelta(seconds=round(time.monotonic() - start))
            failed += ended.returncode != 0
            print(f"{time.strftime('%F %T')} exit code {ended.returncode} after {took}", flush=True)
    return failed
