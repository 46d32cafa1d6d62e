"""Our defaults against its defaults: what a user gets who sets nothing."""

from benchmarks.markdown import markdown
from benchmarks.speed.budget import Allowance
from benchmarks.speed.figures import Spread, megabytes, middle, peak_bytes, rate, ratios, token_rate
from benchmarks.speed.planning import Machine
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, SIDES, Cell
from benchmarks.speed.tables.common import not_run, of

ALLOWANCE = Allowance(budgets=3)
"""The peer goes over the rows three times."""


def cells(machine: Machine, micro_tokens: int) -> list[Cell]:
    """One cell; its precision is what ours chooses by itself."""
    return [Cell("defaults", (PEER, OURS), machine.device, precision=machine.native)]


_WHAT = """\
all-MiniLM-L6-v2 on entailment pairs of SNLI with in-batch negatives. Ours: a configuration of nothing but model, data
and objective. The peer's: `SentenceTransformerTrainingArguments` of nothing but an output folder, and
`MultipleNegativesRankingLoss`. Both go over the same rows, each as often and in the order that its defaults say; pairs
a second are those of the reported training time, with the checkpoints that the defaults write.
"""


def section(results: Results, device: str) -> str:
    """Both sides, and what their defaults are."""
    known = results.cells("defaults", device)
    text = f"### Defaults\n\n{_WHAT}\n"
    for cell in known:
        sides = {side: results.of(cell, side) for side in (PEER, OURS)}
        found = ratios(sides[OURS], sides[PEER])
        if found:
            rows = [
                (
                    SIDES[side],
                    *_settings(runs[min(runs)].measured.details),
                    f"{runs[min(runs)].measured.rows_seen:,}",
                    of(runs, rate),
                    of(runs, token_rate),
                    megabytes(middle(runs, peak_bytes)),
                )
                for side, runs in sides.items()
            ]
            names = list((sides[OURS][min(sides[OURS])].measured.details or {}).keys())
            head = ("side", *names, "pairs trained on", "pairs/s", "tokens/s", "peak memory")
            whole = Spread.of(ratios(sides[OURS], sides[PEER], lambda one: 1 / one.measured.seconds))
            text += f"Ratio of pairs/s over {len(found)} pairs of runs: {Spread.of(found)}. "
            text += f"Of the time of a whole run, epochs as the defaults have them: {whole}.\n\n"
            text += markdown(head, rows, right=4)
    return text + not_run(results, known)


def _settings(details: object) -> list[str]:
    return [str(value) for value in details.values()] if isinstance(details, dict) else []
