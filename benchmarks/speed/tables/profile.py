"""Where the time of a step goes on either side, and so how far a side could still go."""

from benchmarks.markdown import markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.figures import Figure, Pairs, middle
from benchmarks.speed.planning import Machine
from benchmarks.speed.profiling import KINDS, WARM_UP
from benchmarks.speed.record import Record, Results
from benchmarks.speed.runs import OURS, PEER, SIDES, Cell
from benchmarks.speed.tables.common import not_run

BATCH = 64
STEPS = WARM_UP + 4

ALLOWANCE = Allowance(budgets=3, pairs=2)
"""The profiler itself slows a step down."""


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """all-MiniLM-L6-v2 on each of the data sets of the training table."""
    return [
        Cell(
            *("profile", (PEER, OURS), machine.device),
            data=data,
            batch=BATCH,
            precision=machine.native,
            rows=STEPS * BATCH,
        )
        for data in ("snli", "trecqa", "longtail")
    ]


_WHAT = f"""\
all-MiniLM-L6-v2, batches of {BATCH}, as in the table of training: milliseconds a pair by the kind of operator, from
torch's profiler over all steps but the first, each operator without those that it calls. Attention is all of it but for
the products of its weights; "outside of operators" is Python, waiting and what the profiler costs. "Limit" is the whole
time of the peer over what our products of weights alone take: the ratio if all the rest took no time.
"""


def section(results: Results, device: str) -> str:
    """One line for each data set and side."""
    known = results.cells("profile", device)
    rows = [
        (cell.data, SIDES[side], *_parts(runs), limit(results, cell) if side == OURS else "")
        for cell in known
        for side in cell.sides
        if (runs := results.of(cell, side))
    ]
    kinds = _kinds(known[0], results) if rows else []
    head = ("data", "side", *kinds, "in all", "limit")
    return f"### Profile\n\n{_WHAT}\n{markdown(head, rows, right=len(head) - 2)}\n{not_run(results, known)}"


def limit(results: Results, cell: Cell) -> str:
    """See the page; empty where a side has not run."""
    theirs, ours = results.of(cell, PEER), results.of(cell, OURS)
    if not theirs or not ours:
        return ""
    products = next(iter(KINDS))
    return f"{middle(theirs, _in_all) / middle(ours, _of_kind(products)):.2f}"


def _parts(runs: Pairs) -> list[str]:
    """Milliseconds a pair of each kind with their share, then in all."""
    whole = middle(runs, _in_all)
    parts = [middle(runs, _of_kind(kind)) for kind in _milliseconds(runs[min(runs)])]
    return [f"{part:.2f} ({100 * part / whole:.0f} %)" for part in parts] + [f"{whole:.1f}"]


def _kinds(cell: Cell, results: Results) -> list[str]:
    runs = results.of(cell, OURS) or results.of(cell, PEER)
    return list(_milliseconds(runs[min(runs)]))


def _milliseconds(one: Record) -> dict[str, float]:
    """A pair, by kind."""
    pairs = one.run.rows - WARM_UP * one.run.cell.batch
    return {kind: 1000 * seconds / pairs for kind, seconds in (one.measured.details or {}).items()}


def _of_kind(kind: str) -> Figure:
    return lambda one: _milliseconds(one)[kind]


def _in_all(one: Record) -> float:
    return sum(_milliseconds(one).values())
