"""The same losses step by step: with dropout off, both sides compute the same function and take the same steps."""

from benchmarks.markdown import markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, Cell
from benchmarks.speed.tables.common import not_run

STEPS, BATCH = 20, 32
TOLERANCE = 1e-4

DATA = {"in_batch_negatives": "snli", "cosine_regression": "stsb"}

ALLOWANCE = Allowance()


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """Both objectives in fp32: in bf16 two ways to round lie further apart than the tolerance."""
    return [
        Cell(
            *("losses", (PEER, OURS), machine.device),
            data=data,
            batch=BATCH,
            objective=objective,
            dropout=False,
            rows=STEPS * BATCH,
        )
        for objective, data in DATA.items()
    ]


def section(results: Results, device: str) -> str:
    """Both losses of each step, and the largest difference."""
    known = results.cells("losses", device)
    text = (
        f"### Losses\n\nThe first {STEPS} losses of both, all-MiniLM-L6-v2 without dropout, batches of {BATCH} rows, "
        f"the same in the same order, fp32. They are to differ by at most {TOLERANCE:g}.\n\n"
    )
    for cell in known:
        theirs, ours = results.of(cell, PEER), results.of(cell, OURS)
        both = theirs.keys() & ours.keys()
        if both:
            pair = min(both)
            found = (theirs[pair].measured.losses, ours[pair].measured.losses)
            apart = largest_difference(*found)
            rows = [
                (step, f"{one:.6f}", f"{other:.6f}", f"{abs(one - other):.1e}")
                for step, (one, other) in enumerate(zip(*found, strict=True), start=1)
            ]
            head = ("step", "sentence-transformers", "sbert-train", "difference")
            text += (
                f"{cell.objective} on {cell.data}: at most {apart:.1e} apart, which is "
                f"{'within' if apart <= TOLERANCE else 'NOT within'} {TOLERANCE:g}.\n\n"
                f"{markdown(head, rows, right=3)}\n"
            )
    return text + not_run(results, known)


def largest_difference(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Of the losses of any step; ValueError where one side has more of them."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))
