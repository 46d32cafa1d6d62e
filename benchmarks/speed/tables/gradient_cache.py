"""Large batches in small memory: what the gradient cache costs in time, and what it keeps of the memory."""

from collections.abc import Mapping, Sequence

from benchmarks.markdown import NOTHING, markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.figures import (
    Figure,
    Pairs,
    Spread,
    growth_bytes,
    megabytes,
    middle,
    peak_bytes,
    rate,
    ratios,
    seconds_of_step,
    short,
    tokens_of_step,
)
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, SIDES, Cell
from benchmarks.speed.tables.common import not_run, of

UNCACHED = (64, 128, 256)
CACHED = (64, 256, 1024, 4096, 8192)
WITH_PEER = (256, 1024)
"""Batches that the peer's own cache is measured at, too."""

ALLOWANCE = Allowance(budgets=5, pairs=3, steps=8)
"""A batch of thousands takes minutes."""


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """Batches without a cache, then with it."""
    settings = [(batch, None) for batch in UNCACHED] + [(batch, micro_tokens) for batch in CACHED]
    return [
        Cell(
            "gradient_cache",
            (PEER, OURS) if cached and batch in WITH_PEER else (OURS,),
            machine.device,
            data="mixed",
            batch=batch,
            precision=machine.native,
            micro_tokens=cached,
        )
        for batch, cached in settings
    ]


_WHAT = """\
all-MiniLM-L6-v2, in-batch negatives, dropout on, distinct texts two a pair, so that none is encoded for two rows. With
a cache, a batch goes through the encoder in micro-batches of at most so many tokens, twice (Gao et al. 2021); the peer
does the same with `CachedMultipleNegativesRankingLoss` and `mini_batch_num_tokens`. Time per pair is the reported
training time over all pairs; "over uncached" compares it with the uncached batch whose tokens come nearest to a
micro-batch, run by run: the runs of all lines take turns.
Peak memory is the most that the process holds resident from the first step to the last (on a GPU: what torch has
allocated), measured after Linux was asked to forget what loading took; growth is that less what was held right before
the first step, when model and data were loaded.
"""


def section(results: Results, device: str) -> str:
    """One line for each batch and side."""
    known = results.cells("gradient_cache", device)
    rows = []
    for cell in known:
        for side in cell.sides:
            pairs = results.of(cell, side)
            if pairs:
                rows.append(_row(results, known, cell, side, pairs))
    head = (
        *("batch", "tokens of a micro-batch", "side", "steps x runs"),
        *("pairs/s", "s a step", "time per pair over uncached", "peak memory", "over batch 64", "growth"),
        "growth over batch 64",
    )
    return f"### Gradient cache\n\n{_WHAT}\n{markdown(head, rows, right=7)}\n{not_run(results, known)}"


def _row(results: Results, known: Sequence[Cell], cell: Cell, side: str, pairs: Pairs) -> tuple[object, ...]:
    against = reference(results, known)
    small = results.of(against[64], OURS) if 64 in against else {}
    return (
        f"{cell.batch:,}",
        NOTHING if cell.micro_tokens is None else f"{cell.micro_tokens:,}",
        SIDES[side],
        f"{pairs[min(pairs)].run.steps} x {len(pairs)}",
        of(pairs, rate),
        short(middle(pairs, seconds_of_step)),
        slowdown(results, known, cell, pairs),
        megabytes(middle(pairs, peak_bytes)),
        over(pairs, small, peak_bytes),
        megabytes(middle(pairs, growth_bytes)),
        over(pairs, small, growth_bytes),
    )


def reference(results: Results, known: Sequence[Cell]) -> Mapping[int, Cell]:
    """Batch -> our uncached cell of it, of those that have run."""
    return {cell.batch: cell for cell in known if cell.micro_tokens is None and results.of(cell, OURS)}


def slowdown(results: Results, known: Sequence[Cell], cell: Cell, pairs: Pairs) -> str:
    """Time per pair with a cache over that of our uncached batch with about as many tokens as a micro-batch."""
    uncached = [results.of(one, OURS) for one in reference(results, known).values()]
    if cell.micro_tokens is None or not uncached:
        return NOTHING
    wanted = cell.micro_tokens
    nearest = min(uncached, key=lambda of_cell: abs(middle(of_cell, tokens_of_step) - wanted))
    found = ratios(nearest, pairs)
    return str(Spread.of(found)) if found else NOTHING


def over(pairs: Pairs, small: Pairs, figure: Figure) -> str:
    """The median of a figure over that of other runs; nothing where there are none."""
    return f"{middle(pairs, figure) / middle(small, figure):.2f}" if small else NOTHING
