"""What is asked of this tool, beside what was measured."""

from collections.abc import Sequence
from statistics import median

from benchmarks.markdown import NOTHING, markdown
from benchmarks.speed.figures import peak_bytes, ratios
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, Cell
from benchmarks.speed.tables.gradient_cache import over, reference, slowdown

LARGE = 4096
"""The batch of the gradient cache's bars."""

_NO_BF16 = """
This machine has no native bf16. The bars of bf16 were not measured, and the defaults were compared in fp32 on both
sides; where bf16 is native, ours would take it by default.
"""
_LIMITS = """
How far a ratio can go here: "padded / encoded" (Training) is what the tokens that ours need not compute give, and
"limit" (Profile) is the ratio if nothing but the products of weights took any time.
"""


def bars(results: Results, device: str) -> str:
    """One line for each bar."""
    training = results.cells("training", device)
    at_512 = [cell for cell in training if (cell.model, cell.data, cell.batch) == ("bert-base", "snli", 512)]
    encode = results.cells("encode", device)
    rows = [
        ("training against the peer, bf16", "at least 3.0", _medians(results, training, "bf16")),
        ("training against the peer, fp32", "at least 2.5", _medians(results, training, "fp32")),
        (
            "our defaults against its defaults",
            "at least 6",
            _medians(results, results.cells("defaults", device)),
        ),
        ("encode of a mixed corpus, fp32", "at least 1.3", _medians(results, encode, "fp32")),
        ("encode of a mixed corpus, bf16", "at least 3.4", _medians(results, encode, "bf16")),
        (
            f"gradient cache at batch {LARGE:,}: peak memory over batch 64 uncached",
            "under 1.5",
            memory(results, device),
        ),
        (
            f"gradient cache at batch {LARGE:,}: time per pair over uncached at the same micro-batch",
            "under 1.4",
            time(results, device),
        ),
    ]
    if device == "cuda":
        asked = "BERT-base shape, SNLI, bf16, batch 512, against the plain peer"
        rows.append((asked, "at least 2.5", _medians(results, at_512, "bf16")))
    table = markdown(("what", "bar", "measured"), rows, right=1)
    return f"### Bars\n\n{table}{_without_bf16(results, device)}{_LIMITS}"


def _medians(results: Results, cells: Sequence[Cell], precision: str | None = None) -> str:
    """The median ratio of a cell, or from the lowest to the highest of several."""
    found = [
        median(of_cell)
        for cell in cells
        if precision in (None, cell.precision)
        and (of_cell := ratios(results.of(cell, OURS), results.of(cell, PEER)))
    ]
    if len(found) < 2:
        return f"{found[0]:.2f}" if found else NOTHING
    return f"{min(found):.2f} to {max(found):.2f} ({len(found)} cells)"


def memory(results: Results, device: str) -> str:
    """Peak of the large batch with a cache over that of 64 pairs without."""
    small = reference(results, results.cells("gradient_cache", device)).get(64)
    large = _large(results, device)
    if large is None or small is None:
        return NOTHING
    return over(results.of(large, OURS), results.of(small, OURS), peak_bytes)


def time(results: Results, device: str) -> str:
    """See `slowdown`."""
    large, known = _large(results, device), results.cells("gradient_cache", device)
    return NOTHING if large is None else slowdown(results, known, large, results.of(large, OURS))


def _without_bf16(results: Results, device: str) -> str:
    """Said where the machine was asked for its peak in bf16 and has none."""
    asked = [cell for cell in results.cells("hardware", device) if cell.precision == "bf16"]
    return _NO_BF16 if any((plan := results.plan_of(cell)) and plan.reason for cell in asked) else ""


def _large(results: Results, device: str) -> Cell | None:
    cells = results.cells("gradient_cache", device)
    found = (cell for cell in cells if cell.batch == LARGE and cell.micro_tokens is not None)
    return next((cell for cell in found if results.of(cell, OURS)), None)
