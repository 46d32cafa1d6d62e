"""Results -> the page that people read: both sides of each experiment, over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from benchmarks.markdown import NOTHING, markdown
from benchmarks.quality.experiments import BASE, EXPERIMENTS, Experiment, training_arguments
from benchmarks.quality.record import Record, read_records

SIDES = {"peer": "sentence-transformers", "ours": "sbert-train"}

_INTRODUCTION = """\
# Quality beside sentence-transformers

sentence-transformers and sbert-train fine-tune all-MiniLM-L6-v2 on the same rows with the same settings and seeds, in
fp32, and one code judges what they saved: the encoder and the tasks of sbert-train. The base comes in a Python package
(`{base}`). The model is the one after the last step; no dev set selects it. Where
the other rows of a batch are negatives, both keep rows that share a text out of one batch, each in its own way
(`BatchSamplers.NO_DUPLICATES` and `data.no_duplicates`).

This page is written from `benchmarks/quality/results.jsonl` by `python -m benchmarks.quality table`; the folder of the
data sets is named by `SBERT_TRAIN_DATA`, and `benchmarks/data.py` says what is in it and which rows are made of
it. A whole comparison, or what is missing of it, is run by

```bash
python -m benchmarks.quality queue --output RUNS
```
"""

_QUALITY = """\
## Figures

Mean over seeds, lowest to highest, and the standard deviation of a seed (with n - 1); the difference of the means is
over the seeds that both sides have.
"""

_COST = """\
## Cost

Means over seeds. The machine had other work, too, so these seconds do not say which side is faster. Rows are those that
a loss was computed of: where keeping texts apart makes more batches than rows / batch size, sentence-transformers ends
an epoch after so many batches all the same, and leaves the rest of the rows out.
"""


def write_table(results: Path, to: Path) -> None:
    """Write the page of a file of results."""
    to.write_text(page(read_records(results)), encoding="utf-8")


def page(records: Iterable[Record]) -> str:
    """The page, in Markdown. Of several records of one run the last counts."""
    last = {(one.experiment, one.side, one.seed): one for one in records}
    runs = sorted(last.values(), key=_order)
    parts = [
        _INTRODUCTION.format(base=BASE),
        settings(EXPERIMENTS),
        f"{_QUALITY}\n{summary(runs)}",
        f"## Every run\n\n{every_run(runs)}",
        f"{_COST}\n{cost(runs)}",
        f"## With what\n\n{provenance(runs)}",
        f"## Commands\n\n{commands(runs)}",
    ]
    return "\n".join(parts)


def settings(experiments: Mapping[str, Experiment]) -> str:
    """What each experiment trains on what, and what all have in common."""
    rows = [
        (name, one.about, one.epochs, one.batch_size, _short(one.learning_rate))
        for name, one in experiments.items()
    ]
    common = _in_common([training_arguments(one) for one in experiments.values() if not one.arguments])
    told = ", ".join(f"`{name}: {value}`" for name, value in common.items() if name != "max_steps")
    head = ("experiment", "training", "epochs", "batch", "learning rate")
    return (
        f"## Experiments\n\n{markdown(head, rows, right=3)}\nIn all of them, but for what is said: {told}.\n"
    )


def _short(number: float) -> str:
    """0.00002 -> 2e-5, as people write it."""
    return f"{number:.0e}".replace("e-0", "e-")


def _in_common(arguments: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    first, *others = arguments
    return {name: value for name, value in first.items() if all(other[name] == value for other in others)}


def summary(runs: Sequence[Record]) -> str:
    """One line for each figure of each experiment: base, peer, ours, and the difference of the two."""
    rows = []
    for experiment in _experiments(runs):
        for figure in _figures(runs, experiment):
            base, peer, ours = (values(runs, experiment, side, figure) for side in ("base", "peer", "ours"))
            both = peer.keys() & ours.keys()
            difference = (
                mean(ours[seed] for seed in both) - mean(peer[seed] for seed in both) if both else None
            )
            rows.append(
                (
                    experiment,
                    figure,
                    f"{base[None]:.4f}" if base else NOTHING,
                    spread(list(peer.values())),
                    spread(list(ours.values())),
                    NOTHING if difference is None else f"{difference:+.4f}",
                )
            )
    head = ("experiment", "figure", "base", SIDES["peer"], SIDES["ours"], "difference")
    return markdown(head, rows, right=4)


def values(runs: Iterable[Record], experiment: str, side: str, figure: str) -> dict[int | None, float]:
    """Seed -> a figure, of the runs that have it."""
    return {
        one.seed: one.metrics[figure]
        for one in runs
        if one.experiment == experiment and one.side == side and figure in one.metrics
    }


def spread(found: Sequence[float]) -> str:
    """Mean, range and standard deviation of some seeds.

    >>> spread([0.25, 0.75])
    '0.5000 (0.2500 to 0.7500, sd 0.3536, 2 seeds)'
    >>> spread([0.25])
    '0.2500 (1 seed)'
    """
    if not found:
        return NOTHING
    if len(found) == 1:
        return f"{found[0]:.4f} (1 seed)"
    low, high, deviation = min(found), max(found), stdev(found)
    return f"{mean(found):.4f} ({low:.4f} to {high:.4f}, sd {deviation:.4f}, {len(found)} seeds)"


def every_run(runs: Sequence[Record]) -> str:
    """One line for each figure of each trained side, one column for each seed."""
    trained = [one for one in runs if one.side in SIDES]
    seeds = list(dict.fromkeys(one.seed for one in trained))
    rows = []
    for experiment in _experiments(trained):
        for figure in _figures(trained, experiment):
            for side, name in SIDES.items():
                found = values(trained, experiment, side, figure)
                if found:
                    told = (f"{found[seed]:.4f}" if seed in found else NOTHING for seed in seeds)
                    rows.append((experiment, figure, name, *told))
    return markdown(
        ("experiment", "figure", "side", *(f"seed {seed}" for seed in seeds)), rows, right=len(seeds)
    )


def cost(runs: Sequence[Record]) -> str:
    """One line for each trained side of each experiment: steps, rows and time, as means over seeds."""
    rows = []
    for experiment in _experiments(runs):
        for side, name in SIDES.items():
            own = [one for one in runs if (one.experiment, one.side) == (experiment, side)]
            if own:
                seconds = mean(one.train_seconds for one in own)
                seen = mean(one.rows_seen for one in own)
                steps = mean(one.steps for one in own)
                told = (f"{steps:,.0f}", f"{seen:,.0f}", _figure(seconds), _figure(seen / seconds))
                rows.append((experiment, name, *told))
    return markdown(("experiment", "side", "steps", "rows", "seconds", "rows a second"), rows, right=4)


def _figure(number: float) -> str:
    """0.2, 16.4, 5,220: with a digit after the point below 100, where it says something."""
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def provenance(runs: Sequence[Record]) -> str:
    """Hardware, commit and versions, and which runs had them."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for one in runs:
        told = ", ".join(f"{name} {version}" for name, version in one.versions.items())
        groups.setdefault((one.hardware, one.commit, told), []).append(one)
    lines = []
    for (hardware, commit, told), own in groups.items():
        which = "; ".join(
            f"{side} of {', '.join(_experiments(one for one in own if one.side == side))}"
            for side in dict.fromkeys(one.side for one in own)
        )
        lines.append(f"- {hardware}; commit {commit}; {told}: {which}\n")
    return "".join(lines)


def commands(runs: Iterable[Record]) -> str:
    """The command of each run, as it may be given again in a checkout."""
    return "```bash\n" + "".join(f"{one.command}\n" for one in runs) + "```\n"


def _order(one: Record) -> tuple[int, int]:
    """Experiments as their table has them, then the base, the peer and ours; seeds stay as they were run."""
    return list(EXPERIMENTS).index(one.experiment), ("base", *SIDES).index(one.side)


def _experiments(runs: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(one.experiment for one in runs))


def _figures(runs: Iterable[Record], experiment: str) -> list[str]:
    """Names of the figures that any run of an experiment has, in the order of the run that has most."""
    named = [list(one.metrics) for one in runs if one.experiment == experiment]
    return max(named, key=len, default=[])
