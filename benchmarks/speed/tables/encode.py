"""Encoding a corpus of short and long texts."""

from benchmarks.markdown import NOTHING, markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.figures import Spread, megabytes, middle, peak_bytes, rate, ratios, token_rate
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, Cell, Precision
from benchmarks.speed.tables.common import both, not_run, of, share

PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")

ALLOWANCE = Allowance(budgets=3)
"""The more texts, the more there is to sort."""


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """Either precision."""
    return [
        Cell("encode", (PEER, OURS), machine.device, data="mixed", precision=precision)
        for precision in PRECISIONS
    ]


_WHAT = """\
`SentenceEncoder.encode(texts)` against `SentenceTransformer.encode(texts)`, both with their defaults, from strings to
float32 embeddings, all-MiniLM-L6-v2, over distinct texts of STSb, SNLI and TREC QA in random order. For bf16 ours is
told `precision="bf16"`, the peer is loaded with weights in bf16. A few texts are encoded before the clock starts. In
the columns behind the ratio, the peer stands first.
"""


def section(results: Results, device: str) -> str:
    """One line for each precision."""
    known = results.cells("encode", device)
    rows = []
    for cell in known:
        theirs, ours = results.of(cell, PEER), results.of(cell, OURS)
        found = ratios(ours, theirs)
        if found:
            apart = [
                one.difference
                for side in (theirs, ours)
                for one in side.values()
                if one.difference is not None
            ]
            rows.append(
                (
                    cell.precision,
                    f"{ours[min(ours)].run.rows:,} x {len(found)}",
                    Spread.of(found),
                    both(of(theirs, rate), of(ours, rate)),
                    both(of(theirs, token_rate), of(ours, token_rate)),
                    both(share(results, cell, theirs), share(results, cell, ours)),
                    both(*(megabytes(middle(side, peak_bytes)) for side in (theirs, ours))),
                    f"{max(apart):.1e}" if apart else NOTHING,
                )
            )
    head = (
        *("precision", "texts x pairs", "ratio", "texts/s", "tokens/s", "share of peak", "peak memory"),
        "largest difference",
    )
    return f"### Encode\n\n{_WHAT}\n{markdown(head, rows, right=7)}\n{not_run(results, known)}"
