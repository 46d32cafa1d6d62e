"""How cost grows with the batch (runs of the gradient cache's table) and with the number of pairs."""

from collections.abc import Callable

from benchmarks.markdown import markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.chart import Line, Panel
from benchmarks.speed.figures import Figure, Spread, middle, peak_bytes, rate, seconds_of_step, total_seconds
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, SIDES, Cell
from benchmarks.speed.tables.common import not_run, of

PAIRS = (1024, 2048, 4096, 8192, 16384)
BATCH = 64

ALLOWANCE = Allowance(budgets=4, pairs=2)
"""Sixteen thousand pairs take minutes."""


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """Numbers of pairs, a side at a time: where the peer takes longer than the budget, ours still runs."""
    return [
        Cell(
            *("curves", (side,), machine.device),
            data="mixed",
            batch=BATCH,
            precision=machine.native,
            rows=rows,
        )
        for rows in PAIRS
        for side in (OURS, PEER)
    ]


def figure_name(device: str) -> str:
    """The file of the plot, beside the page."""
    return f"curves-{device}.svg"


_WHAT = """\
Against the batch: the runs of the table above. Against the number of pairs: one epoch with batches of 64, seconds from
the start of the process to the end of training, model and tokenising included.
"""


def section(results: Results, device: str) -> str:
    """The plot, and the table of what grows with the number of pairs."""
    known = results.cells("curves", device)
    rows = []
    for cell in known:
        [side] = cell.sides
        runs = results.of(cell, side)
        if runs:
            spread = Spread.of([total_seconds(one) for one in runs.values()])
            rows.append((f"{cell.rows:,}", SIDES[side], cell.precision, len(runs), spread, of(runs, rate)))
    head = ("pairs", "side", "precision", "runs", "seconds in all", "pairs/s in training")
    drawn = any(panel.lines for panel in panels(results, device))
    plot = f"![cost against batch and number of pairs]({figure_name(device)})\n\n" if drawn else ""
    return f"### Curves\n\n{_WHAT}\n{plot}{markdown(head, rows, right=3)}\n{not_run(results, known)}"


def panels(results: Results, device: str) -> list[Panel]:
    """Time per pair, seconds per step and peak memory against the batch; total time against the number of pairs."""
    by_batch = results.cells("gradient_cache", device)
    by_pairs = results.cells("curves", device)

    def lines(figure: Figure) -> tuple[Line, ...]:
        return _lines(
            results,
            {
                "ours, cache": (OURS, [cell for cell in by_batch if cell.micro_tokens is not None]),
                "ours": (OURS, [cell for cell in by_batch if cell.micro_tokens is None]),
                "peer, cache": (PEER, [cell for cell in by_batch if cell.micro_tokens is not None]),
            },
            lambda cell: cell.batch,
            figure,
        )

    total = _lines(
        results,
        {"ours": (OURS, by_pairs), "peer": (PEER, by_pairs)},
        lambda cell: cell.rows or 0,
        total_seconds,
    )
    return [
        Panel("Time per pair", "batch", "ms", lines(lambda one: 1000 / rate(one))),
        Panel("Time per step", "batch", "s", lines(seconds_of_step)),
        Panel("Peak memory", "batch", "MB", lines(lambda one: peak_bytes(one) / 1e6)),
        Panel("Process start to end of training", "pairs", "s", total),
    ]


def _lines(
    results: Results,
    wanted: dict[str, tuple[str, list[Cell]]],
    place: Callable[[Cell], int],
    figure: Figure,
) -> tuple[Line, ...]:
    """Name -> its points, medians over runs; without those that have none."""
    found = []
    for name, (side, cells) in wanted.items():
        points = sorted(
            (place(cell), middle(runs, figure)) for cell in cells if (runs := results.of(cell, side))
        )
        if points:
            found.append(Line(name, tuple(points)))
    return tuple(found)
