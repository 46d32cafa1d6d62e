"""What several tables say alike."""

from collections.abc import Sequence

from benchmarks.markdown import NOTHING
from benchmarks.speed.figures import Figure, Pairs, middle, share_of_peak, short
from benchmarks.speed.planning import peak_of
from benchmarks.speed.record import Results
from benchmarks.speed.runs import MACHINE, SIDES, Cell

PARAMETERS = {"minilm": 10_616_832, "bert-base": 84_934_656}
"""Weights of the layers' matrices, as `models.matmul_parameters` counts them, so that a page needs no model."""


def of(pairs: Pairs, figure: Figure, told: str = "") -> str:
    """The median of a figure, or nothing where there is no run."""
    return f"{short(middle(pairs, figure))}{told}" if pairs else NOTHING


def share(results: Results, cell: Cell, pairs: Pairs) -> str:
    """The median share of the peak; nothing where the peak was not measured."""
    peak, parameters = peak_of(results, cell.device, cell.precision), PARAMETERS.get(cell.model)
    if not pairs or peak is None or parameters is None:
        return NOTHING
    return f"{100 * middle(pairs, lambda one: share_of_peak(one, parameters, peak)):.0f} %"


def both(*told: str) -> str:
    """What the sides have, in one column."""
    return " / ".join(told)


def not_run(results: Results, cells: Sequence[Cell]) -> str:
    """A line for each reason why cells have not been run, with these cells."""
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        planned = results.plan_of(cell)
        if planned is not None and planned.reason:
            reasons.setdefault(planned.reason, []).append(name_of(cell))
        elif not any(results.of(cell, side) for side in cell.sides):
            reasons.setdefault("planned, but without a record", []).append(name_of(cell))
    return "".join(f"- {reason}: {'; '.join(names)}.\n" for reason, names in reasons.items())


def name_of(cell: Cell) -> str:
    """A cell in words."""
    batch = f"batch {cell.batch:,}" if cell.batch else ""
    cached = "" if cell.micro_tokens is None else f"cache of {cell.micro_tokens:,} tokens"
    rows = "" if cell.rows is None else f"{cell.rows:,} rows"
    alone = SIDES[cell.sides[0]] if len(cell.sides) == 1 and cell.sides[0] != MACHINE else ""
    return " ".join(
        part for part in (cell.model, cell.data, batch, cell.precision, cached, rows, alone) if part
    )
