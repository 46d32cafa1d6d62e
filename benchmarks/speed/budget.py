"""How much a cell gets of its budget of seconds, before anything of it has run.

An estimate needs to be right to a factor of two only: the queue stops a cell in time, and the page tells what was run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.speed.record import Plan
from benchmarks.speed.runs import OURS, Cell

LEAST_STEPS = 4
LEAST_FOR_MEMORY = 2
"""Steps of a run whose memory is compared: the state of the optimizer comes to be in the first."""
ASSUMED_SHARE = 0.5
"""Of the peak of matrix products: what an estimate takes for what a side reaches."""

TRAINING, TRAINING_CACHED, ENCODING = 6, 8, 2
"""Operations for each token and weight: forward (2) and backward (4), with a cache the forward once more."""


@dataclass(frozen=True)
class Allowance:
    """How much is run of a table's cells."""

    budgets: int = 1
    """That a cell gets."""
    pairs: int = 5
    """At most."""
    steps: int = 40
    """Of a run, at most."""


@dataclass(frozen=True)
class Unit:
    """What can be run at least: a step, or some texts."""

    rows: int
    seconds: dict[str, float]
    """Side -> estimate."""

    @property
    def slowest(self) -> float:
        """The estimate of the side that takes longest."""
        return max(self.seconds.values())

    @property
    def all_sides(self) -> float:
        """One unit of every side."""
        return sum(self.seconds.values())


def unit_of(
    cell: Cell, columns: Sequence[Sequence[int]], *, parameters: int, peak: float, epochs: int = 1
) -> Unit:
    """The estimate of a unit.

    Args:
        columns: tokens of each text of the unit's rows, column by column: the peer pads each to its longest.
        parameters: see `matmul_parameters`.
        peak: operations a second in the cell's precision.
        epochs: how often the peer goes over the rows.
    """
    tokens = {
        side: sum(map(sum, columns))
        if side == OURS or cell.table == "encode"  # both sort what they encode
        else epochs * padded(columns)
        for side in cell.sides
    }
    work = ENCODING if cell.table == "encode" else TRAINING if cell.micro_tokens is None else TRAINING_CACHED
    seconds = {side: work * parameters * count / (ASSUMED_SHARE * peak) for side, count in tokens.items()}
    return Unit(rows=len(columns[0]), seconds=seconds)


def padded(columns: Sequence[Sequence[int]]) -> int:
    """Tokens of columns that are each padded to their longest text.

    >>> padded([[3, 5], [2, 2]])
    14
    """
    return sum(len(column) * max(column) for column in columns)


def plan(
    cell: Cell,
    unit: Unit,
    budget: float,
    most_rows: int | None = None,
    allowance: Allowance = Allowance(),
) -> Plan:
    """Steps and pairs that fit into a budget.

    The more pairs the better, as many as are allowed, as long as each run has LEAST_STEPS; then more steps. A cell of
    which one unit of the slowest side is over the budget is not run; where that fits and no more, the cell gets one
    unit of each side, and two where memory is compared.

    Args:
        budget: seconds of training time, of all sides and pairs together.
        most_rows: how many there are; None: as many as are wanted.
    """
    if cell.rows is not None:  # the unit is the whole run
        pairs = int(np.clip(budget / unit.all_sides, 1, allowance.pairs))
        return _fitting(cell, cell.rows, pairs, unit, budget)
    affordable = budget / unit.all_sides
    pairs = int(np.clip(affordable / LEAST_STEPS, 1, allowance.pairs))
    most = allowance.steps if most_rows is None else max(1, most_rows // unit.rows)
    least = LEAST_FOR_MEMORY if cell.table == "gradient_cache" else 1
    steps = int(np.clip(affordable / pairs, least, most))
    return _fitting(cell, steps * unit.rows, pairs, unit, budget)


def _fitting(cell: Cell, rows: int, pairs: int, unit: Unit, budget: float) -> Plan:
    estimate = round(unit.slowest, 2)
    if unit.slowest > budget:
        what = "a run" if cell.rows is not None else "a step"
        reason = f"{what} would take about {unit.slowest:,.0f} s, the budget is {budget:,.0f} s"
        return Plan(cell, rows=0, pairs=0, estimate=estimate, reason=f"not run: {reason}")
    return Plan(cell, rows=rows, pairs=pairs, estimate=estimate)
