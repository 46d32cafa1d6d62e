"""The command line: python -m benchmarks.quality run, queue or table."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.quality.experiments import EXPERIMENTS, SEEDS

SIDES = ("base", "peer", "ours")
DATA = "SBERT_TRAIN_DATA"


def main() -> int:
    """Do what the command line says; the exit code."""
    args = parser().parse_args()
    if args.command == "table":
        from benchmarks.quality.table import write_table

        if not args.results.exists():
            sys.exit(
                f"{args.results}: there are no results; copy the results.jsonl of a finished queue there"
            )
        write_table(args.results, args.to)
        return 0
    if DATA not in os.environ:
        sys.exit(f"{DATA} names no folder; set it to the one with the data sets (see benchmarks/data.py)")
    from benchmarks.quality.record import line_of
    from benchmarks.quality.run import run, run_queue, runs_of

    if args.command == "queue":
        return 1 if run_queue(runs_of(args.experiment, args.side, args.seed), args.output) else 0
    seed = None if args.side == "base" else args.seed
    print(
        line_of(run(args.experiment, args.side, seed, Path(os.environ[DATA]), args.output, args.steps)),
        end="",
    )
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)

    one = commands.add_parser("run", help="train one side of one experiment, judge it, record it")
    one.add_argument("--experiment", choices=EXPERIMENTS, required=True)
    one.add_argument("--side", choices=SIDES, required=True)
    one.add_argument("--seed", type=int, default=SEEDS[0])
    one.add_argument("--output", type=Path, required=True, help="folder for models and results.jsonl")
    one.add_argument("--steps", type=int, help="stop after so many steps and record nothing: does it run?")

    many = commands.add_parser("queue", help="do in turn all runs that have no record yet")
    many.add_argument("--experiment", choices=EXPERIMENTS, nargs="+", default=list(EXPERIMENTS))
    many.add_argument("--side", choices=SIDES, nargs="+", default=list(SIDES))
    many.add_argument("--seed", type=int, nargs="+", default=list(SEEDS))
    many.add_argument("--output", type=Path, required=True, help="as of run")

    table = commands.add_parser("table", help="results -> the page that people read")
    here = Path(__file__).parent
    table.add_argument("--results", type=Path, default=here / "results.jsonl")
    table.add_argument("--to", type=Path, default=here.parent / "QUALITY.md")
    return top


if __name__ == "__main__":
    sys.exit(main())
