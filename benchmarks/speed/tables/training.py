"""Training throughput: the same steps on both sides, over models, data, batches and precisions."""

from collections.abc import Sequence

from benchmarks.markdown import NOTHING, markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.figures import (
    Pairs,
    Spread,
    megabytes,
    middle,
    padding_and_repeats,
    peak_bytes,
    rate,
    ratios,
    step_rate,
    token_rate,
)
from benchmarks.speed.models import ABOUT as MODELS
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.rows import ABOUT as DATA
from benchmarks.speed.runs import OURS, PEER, PEER_FLASH, SIDES, Cell, Precision
from benchmarks.speed.tables.common import both, not_run, of, share

BATCHES = (32, 64, 256)
ON_A_GPU = 512
PRECISIONS: Sequence[Precision] = ("fp32", "bf16")

ALLOWANCE = Allowance()


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """The whole matrix; on a GPU, BERT-base with a batch of 512, too, and with the peer's flash attention in bf16."""
    found = []
    for model in MODELS:
        on_gpu = machine.device == "cuda" and model == "bert-base"
        for data in ("snli", "trecqa", "longtail"):
            for batch in (*BATCHES, *((ON_A_GPU,) if on_gpu else ())):
                for precision in PRECISIONS:
                    with_flash = on_gpu and precision == "bf16"
                    for sides in _sides(with_flash, machine.flash):
                        found.append(Cell("training", sides, machine.device, model, data, batch, precision))
    return found


def _sides(with_flash: bool, installed: bool) -> list[tuple[str, ...]]:
    """The sides of a cell; what cannot run stands in a cell of its own, so that the page lists it."""
    if not with_flash:
        return [(PEER, OURS)]
    return [(PEER, PEER_FLASH, OURS)] if installed else [(PEER, OURS), (PEER_FLASH,)]


def section(results: Results, device: str) -> str:
    """The matrix, and what is missing of it."""
    known = results.cells("training", device)
    rows = [
        row for cell in known for peer in (PEER, PEER_FLASH) if (row := _row(results, cell, peer)) is not None
    ]
    head = (
        *("model", "data", "batch", "precision", "peer", "steps x pairs"),
        *(
            "ratio of training time",
            "ratio by steps",
            "padded / encoded",
            "pairs/s",
            "tokens/s",
            "share of peak",
        ),
        "peak memory",
    )
    return (
        f"### Training\n\n{_WHAT}\n{summary(results, known)}\n{markdown(head, rows, right=8)}\n"
        f"{not_run(results, known)}\n#### Start\n\n{start(results, known)}"
    )


def start(results: Results, cells: Sequence[Cell]) -> str:
    """What comes before the first step."""
    rows = []
    for model in dict.fromkeys(cell.model for cell in cells):
        for side in (PEER, PEER_FLASH, OURS):
            records = [
                one for cell in cells if cell.model == model for one in results.of(cell, side).values()
            ]
            if records:
                seconds = Spread.of([one.measured.setup_seconds for one in records])
                rows.append((model, SIDES[side], len(records), seconds))
    told = (
        "Seconds from the start of the process to the first step, over all cells: imports, the reading of the data "
        "(which for both sides is the benchmark's), model, tokenising (ours), checks. Nothing is in a cache.\n\n"
    )
    return told + markdown(("model", "side", "runs", "seconds"), rows, right=2)


_MODELS = "".join(f"- `{name}`: {about}.\n" for name, about in MODELS.items())
_DATA = "".join(f"- `{name}`: {DATA[name]}.\n" for name in ("snli", "trecqa", "longtail"))
_WHAT = f"""\
In-batch negatives (scale 20), dropout as the model's configuration has it (0.1), AdamW (`adamw_torch_fused`), learning
rate 2e-5, `max_grad_norm` 1. Both sides take the same batches in the same order: the peer's sampler of batches is given
the rows in order, and for ours the rows are written where its sampler finds them in that order. No row is twice in a
batch; where the data are used up they are shuffled anew.

{_MODELS}{_DATA}
The ratio is of the training times that both Trainers report (`train_runtime`: from the start of training to its end,
all steps and the loading of their batches, no loading of the model): theirs over ours, so above 1 ours is faster; the
median over pairs, lowest to highest. Ours has tokenised before that time begins, the peer tokenises in it; what comes
before the first step is under "Start". The ratio by steps is that of the median steps, the first left out, timed by one
callback on both sides from the end of a step to the end of the next. "Padded / encoded" is the number of tokens that
the peer takes through the model, each column of a batch padded to its longest text, over that which ours takes, the
distinct texts without padding: what the ratio would be, were a token as fast on both sides. In the columns behind, the
peer stands first. Tokens are real ones: of all texts of all rows, without padding, a text that is repeated counts each
time.
"""


def summary(results: Results, cells: Sequence[Cell]) -> str:
    """The lowest and highest of the median ratios, for each precision and peer that was measured."""
    lines = []
    for precision in PRECISIONS:
        for peer, against in ((PEER, ""), (PEER_FLASH, " with flash attention")):
            medians = [
                Spread.of(found).median
                for cell in cells
                if cell.precision == precision and (found := _ratios(results, cell, peer))
            ]
            if medians:
                lines.append(
                    f"In {precision}, against the peer{against}, the medians of {len(medians)} cells lie between "
                    f"{min(medians):.2f} and {max(medians):.2f}.\n"
                )
    return "".join(lines)


def _padding(ours: Pairs) -> str:
    """The median; nothing where a run was recorded before its tokens were counted so."""
    counted = all(one.measured.distinct_tokens for one in ours.values())
    return f"{middle(ours, padding_and_repeats):.2f}" if counted else NOTHING


def _ratios(results: Results, cell: Cell, peer: str) -> list[float]:
    return ratios(results.of(cell, OURS), results.of(cell, peer))


def _row(results: Results, cell: Cell, peer: str) -> tuple[object, ...] | None:
    """The line of a cell; None where no pair of it has run."""
    found = _ratios(results, cell, peer)
    if not found:
        return None
    theirs, ours = results.of(cell, peer), results.of(cell, OURS)
    by_steps = ratios(ours, theirs, step_rate)
    return (
        cell.model,
        cell.data,
        cell.batch,
        cell.precision,
        "flash attention" if peer == PEER_FLASH else "plain",
        f"{ours[min(ours)].run.steps} x {len(found)}",
        Spread.of(found),
        f"{Spread.of(by_steps).median:.2f}" if by_steps else NOTHING,
        _padding(ours),
        both(of(theirs, rate), of(ours, rate)),
        both(of(theirs, token_rate), of(ours, token_rate)),
        both(share(results, cell, theirs), share(results, cell, ours)),
        both(*(megabytes(middle(side, peak_bytes)) for side in (theirs, ours))),
    )
