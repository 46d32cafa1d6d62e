"""The table of a series tells base, mean and spread, each seed, and the verdict in words."""

import io

from rich.console import Console

from sbert_train.reporting.runs import Change
from sbert_train.reporting.seeds import Series, series_of
from sbert_train.reporting.seeds_table import render
from tests.reporting.finished import change, eval_set, finished


def printed(series: Series, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for part in render(series, width):
        console.print(part, soft_wrap=not hasattr(part, "columns"))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def series(name: str = "stsb", **metrics: list[Change]) -> Series:
    seeds = range(1, len(next(iter(metrics.values()))) + 1)
    return series_of(
        {
            seed: finished(
                f"seed-{seed}",
                eval_set(name, more={metric: changes[seed - 1] for metric, changes in metrics.items()}),
                selected_by=f"{name}_pearson",
            )
            for seed in seeds
        }
    )


def test_it_tells_the_base_the_mean_the_gain_and_the_verdict() -> None:
    lines = printed(
        series(
            spearman=[change(0.8, 0.82), change(0.8, 0.84)],
            other=[change(0.1, 0.2), change(0.1, 0.2)],
            pearson=[change(0.7, 0.75), change(0.7, 0.66)],
        )
    )
    words = [" ".join(line.split()) for line in lines]
    assert "eval set before after, 2 seeds gain" in words
    start = words.index("stsb, 1,379 pairs")
    assert words[start + 1 : start + 4] == [
        "spearman 0.8000 0.8300 ± 0.0141 +0.0300",
        "seed 1 0.8000 0.8200 +0.0200",
        "seed 2 0.8000 0.8400 +0.0400",
    ]
    assert words[start + 4] == "pearson 0.7000 0.7050 ± 0.0636 +0.0050 (noise)"
    told = " ".join(words)
    assert "stsb, spearman: the gain is not smaller than the spread" in told
    assert "stsb, pearson: noise: the gain is smaller than the spread over seeds" in told
    assert "1 of 2 seeds gained, 1 lost" in told and "other" not in told.replace("another", "")
    assert max(map(len, lines)) <= 80


def test_what_the_runs_bring_is_printed_as_text() -> None:
    lines = printed(series("\x1b[2J[red]x", pearson=[change(0.8, 0.82), change(0.8, 0.84)]))
    assert not any("\x1b" in line for line in lines) and any("\\x1b[2J[red]x" in line for line in lines)
