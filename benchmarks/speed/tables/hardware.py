"""The machine: its peak of matrix products, which shares are of."""

from benchmarks.markdown import NOTHING, markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.runs import MACHINE, Cell

ALLOWANCE = Allowance()


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """The peak in either precision."""
    return [
        Cell("hardware", (MACHINE,), machine.device, model="", data="", precision=precision)
        for precision in ("fp32", "bf16")
    ]


def section(results: Results, device: str) -> str:
    """What was multiplied, and how fast."""
    found = {cell.precision: results.of(cell, MACHINE) for cell in results.cells("hardware", device)}
    rates = {name: records[0].measured.details or {} for name, records in found.items() if records}
    shapes = list(dict.fromkeys(shape for of_shape in rates.values() for shape in of_shape))
    rows = [
        (shape, *(_gigaflops(rates.get(precision, {}).get(shape)) for precision in found)) for shape in shapes
    ]
    reasons = [
        f"{cell.precision}: {plan.reason}.\n"
        for cell in results.cells("hardware", device)
        if (plan := results.plan_of(cell)) and plan.reason
    ]
    head = ("shape (M x K x N)", *(f"{precision}, 10⁹ operations a second" for precision in found))
    highest = ", ".join(
        f"{_gigaflops(max(of_shape.values()))} in {name}" for name, of_shape in rates.items() if of_shape
    )
    return (
        "### Peak of matrix products\n\nThe best of at least ten products of each shape, 2 M K N operations each. "
        f"The highest is the peak that shares are of: {highest or NOTHING}.\n\n"
        f"{markdown(head, rows, right=len(found))}\n{''.join(reasons)}"
    )


def _gigaflops(rate: float | None) -> str:
    return NOTHING if rate is None else f"{rate / 1e9:,.1f}"
