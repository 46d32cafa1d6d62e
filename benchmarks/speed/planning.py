"""A cell and this machine -> what is run of it, or why nothing is."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from benchmarks.speed.budget import Allowance, Unit, plan, unit_of
from benchmarks.speed.models import count_tokens, matmul_parameters, model_folder
from benchmarks.speed.record import Plan, Results
from benchmarks.speed.rows import POOLS, corpus, in_order
from benchmarks.speed.runs import MACHINE, PEER_FLASH, SEED, Cell, Precision
from sbert_train.model.precision import native_precision

UNIT_ROWS = 64
"""Of a cell without a batch: training rows, or texts to encode."""

DEFAULT_EPOCHS = 3
"""Of the peer, whose batch is 8 then."""


@dataclass(frozen=True)
class Machine:
    """What decides which cells there are."""

    device: str
    """cpu or cuda."""
    bf16: bool
    """Whether it multiplies matrices in bfloat16 by itself."""
    flash: bool
    """Whether the peer can have flash attention."""

    @property
    def native(self) -> Precision:
        """The precision that `auto` chooses."""
        return "bf16" if self.bf16 else "fp32"


def this_machine() -> Machine:
    """As runs will find it."""
    cuda = torch.cuda.is_available()
    return Machine(
        device="cuda" if cuda else "cpu",
        bf16=native_precision(use_cpu=not cuda) == "bf16",
        flash=cuda and find_spec("flash_attn") is not None,
    )


def refusal(cell: Cell, machine: Machine) -> str:
    """Why this machine cannot do a cell; empty where it can."""
    if cell.precision == "bf16" and not machine.bf16:
        return "not measured: no native bf16"
    if PEER_FLASH in cell.sides and not machine.flash:
        return "not measured: flash_attn is not installed"
    return ""


def plan_cell(
    cell: Cell,
    machine: Machine,
    results: Results,
    *,
    data: Path,
    cache: Path,
    budget: float,
    allowance: Allowance,
) -> Plan:
    """What a cell gets.

    Args:
        results: with the peak of the machine in the cell's precision, unless the cell is what measures it.
        budget: see `budget.plan`, as for allowance.
    """
    reason = refusal(cell, machine)
    if reason:
        return Plan(cell, rows=0, pairs=0, estimate=None, reason=reason)
    if cell.sides == (MACHINE,):
        return Plan(cell, rows=0, pairs=1, estimate=None)
    if cell.table == "losses":  # a proof, not a measurement: once, whatever it takes
        return Plan(cell, rows=cell.rows or 0, pairs=1, estimate=None)
    model = model_folder(cell.model, cell.dropout, cache)
    peak = peak_of(results, cell.device, cell.precision)
    if peak is None:
        raise ValueError(
            f"expected the peak of {cell.device} in {cell.precision} among the results; measure table hardware first"
        )
    unit, most = _unit(cell, model, data, peak)
    if unit is None:
        return Plan(cell, rows=0, pairs=0, estimate=None, reason=f"not run: there are only {most:,} rows")
    return plan(cell, unit, budget, most, allowance)


def peak_of(results: Results, device: str, precision: Precision) -> float | None:
    """Operations a second of the shape that this machine multiplies fastest; None where it was not measured."""
    for one in reversed(results.records):
        cell = one.run.cell
        if (cell.table, cell.device, cell.precision) == ("hardware", device, precision):
            return max((one.measured.details or {}).values(), default=None)
    return None


def _unit(cell: Cell, model: Path, data: Path, peak: float) -> tuple[Unit | None, int | None]:
    """The unit of a cell, None where there are not enough rows; and how many rows it can take, None for any number."""
    if cell.table == "encode":
        texts = corpus(data)
        some = [count_tokens(model, texts[: 16 * UNIT_ROWS])]
        wide = unit_of(cell, some, parameters=matmul_parameters(model), peak=peak)
        return Unit(UNIT_ROWS, {side: seconds / 16 for side, seconds in wide.seconds.items()}), len(texts)
    pool = POOLS[cell.data](data)
    rows = cell.rows or cell.batch or UNIT_ROWS
    if len(pool) < (cell.batch or rows):
        return None, len(pool)
    some_rows = in_order(pool, cell.batch or rows, cell.batch or rows, SEED)
    names = [name for name, value in some_rows[0].items() if isinstance(value, str)]
    unit = unit_of(
        cell,
        [count_tokens(model, [row[name] for row in some_rows]) for name in names],
        parameters=matmul_parameters(model),
        peak=peak,
        epochs=1 if cell.batch else DEFAULT_EPOCHS,
    )
    times = rows / len(some_rows)
    scaled = Unit(rows, {side: times * seconds for side, seconds in unit.seconds.items()})
    return scaled, None if cell.batch else len(pool)
