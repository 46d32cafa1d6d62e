"""The command line: python -m benchmarks.speed TABLE, all or page."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

DATA = "SBERT_TRAIN_DATA"
TABLE_NAMES = ("hardware", "training", "profile", "defaults", "losses", "encode", "gradient_cache", "curves")
HERE = Path(__file__).parent


def main() -> int:
    """Do what the command line says; the exit code."""
    args = parser().parse_args()
    if args.command == "page":
        return write(args)
    if DATA not in os.environ:
        sys.exit(f"{DATA} names no folder; set it to the one with the data sets (see benchmarks/data.py)")
    data = Path(os.environ[DATA])
    if args.command == "one":
        from benchmarks.speed.measure import measure
        from benchmarks.speed.runs import Run

        measured = measure(Run.from_json(json.loads(args.run)), data, args.cache, args.folder)
        (args.folder / "measured.json").write_text(json.dumps(asdict(measured)), encoding="utf-8")
        return 0
    from benchmarks.queues import only_queue
    from benchmarks.speed.queue import Queue

    tables = TABLE_NAMES if args.command == "all" else tuple(dict.fromkeys(("hardware", args.command)))
    queue = Queue(args.output.absolute(), data.absolute(), args.budget, args.micro_tokens)
    with only_queue(queue.output):
        return 1 if sum(queue.run_table(table) for table in tables) else 0


def write(args: argparse.Namespace) -> int:
    """The page, from the results that are kept, with new ones if there are any."""
    from benchmarks.speed.page import merged, write_page
    from benchmarks.speed.record import read_results, write_results

    if args.take is not None:
        file = args.take / "results.jsonl"
        if not file.exists():
            sys.exit(f"{file}: there are no results; run a table with --output {args.take} first")
        write_results(args.results, merged(read_results(args.results), read_results(file)))
    if not args.results.exists():
        sys.exit(f"{args.results}: there are no results; name the folder of a finished queue with --take")
    write_page(read_results(args.results), args.to)
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for name in (*TABLE_NAMES, "all"):
        about = "all tables in turn" if name == "all" else f"what is missing of table {name}"
        table = commands.add_parser(name, help=about)
        table.add_argument("--output", type=Path, required=True, help="folder for models and results.jsonl")
        table.add_argument(
            "--budget",
            type=float,
            default=120.0,
            help="seconds of training time for a cell, all sides and pairs together (120); some tables take more",
        )
        table.add_argument(
            "--micro-tokens",
            type=int,
            help="tokens of a micro-batch of the gradient cache (2048, on a GPU 8192)",
        )

    page = commands.add_parser("page", help="results -> RESULTS.md and its plots")
    page.add_argument("--take", type=Path, help="first take over the results of this --output")
    page.add_argument("--results", type=Path, default=HERE / "results.jsonl")
    page.add_argument("--to", type=Path, default=HERE.parent / "RESULTS.md")

    one = commands.add_parser("one", help="one run, as the queue starts it")
    one.add_argument("--run", required=True, help="JSON of a run")
    one.add_argument("--cache", type=Path, required=True, help="folder of models")
    one.add_argument("--folder", type=Path, required=True, help="folder of this run")
    return top


if __name__ == "__main__":
    sys.exit(main())
