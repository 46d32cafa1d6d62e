"""The table says figures, intervals and differences in plain text, and loses no digit when narrow."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.compare import Comparison, TaskComparison
from sbert_train.evaluation.table import render


def comparison(models: Sequence[str], sets: Sequence[str] = ("stsb",)) -> Comparison:
    score = Estimate(0.8203, 0.7986, 0.8419, 1000)
    gain, noise = Estimate(-0.0376, -0.0411, -0.0312, 1000), Estimate(0.0068, -0.0115, 0.0268, 1000)
    return Comparison(
        models=tuple(models),
        tasks=tuple(
            TaskComparison(
                task=name,
                kind="sts",
                primary_metric="spearman_cosine",
                n=1379,
                unit="pairs",
                details={"pairs": 1379},
                fingerprint="",
                scores={model: {"pearson_cosine": score, "spearman_cosine": score} for model in models},
                differences={
                    model: {"pearson_cosine": noise, "spearman_cosine": gain} for model in models[1:]
                },
            )
            for name in sets
        ),
        resamples=1000,
        seed=0,
    )


def printed(result: Comparison, *, width: int = 80, all_metrics: bool = False, terminal: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
    )
    console.print(render(result, all_metrics=all_metrics))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_two_models_side_by_side() -> None:
    lines = [line.rstrip() for line in printed(comparison(["before", "after"])).splitlines() if line.strip()]
    assert [line.split() for line in lines] == [
        ["eval", "set", "before", "after"],
        ["─" * len(lines[1].strip())],
        ["stsb,", "1,379", "pairs"],
        ["spearman_cosine", "0.8203", "0.8203"],
        ["95%", "interval", "0.7986", "to", "0.8419", "0.7986", "to", "0.8419"],
        ["difference", "baseline", "-0.0376", "*"],
        ["95%", "interval", "-0.0411", "to", "-0.0312"],
        *[line.split() for line in lines[7:]],
    ]
    caption = " ".join(" ".join(lines[7:]).split())
    assert caption == (
        "Intervals: 1,000 bootstrap resamples. * excludes 0: a difference from the first model beyond the "
        "chance of these examples."
    )


def test_one_model_has_no_difference_and_no_star() -> None:
    text = printed(comparison(["only"]))
    assert "0.7986 to 0.8419" in text
    assert "difference" not in text
    assert "*" not in text


def test_all_metrics_begin_with_the_primary_one() -> None:
    text = printed(comparison(["a", "b"]), all_metrics=True)
    assert text.index("spearman_cosine") < text.index("pearson_cosine")
    assert "pearson_cosine" not in printed(comparison(["a", "b"]))
    assert "+0.0068 *" not in text  # its interval holds zero
    assert "+0.0068" in text


def test_one_more_metric_is_shown_for_the_eval_set_that_it_is_of() -> None:
    console = Console(file=io.StringIO(), width=80)
    both = comparison(["a", "b"], sets=("dev", "other"))
    console.print(render(both, also="dev_pearson_cosine"))
    assert isinstance(console.file, io.StringIO)
    names = [line.split()[0] for line in console.file.getvalue().splitlines() if "_cosine" in line]
    assert names == ["spearman_cosine", "pearson_cosine", "spearman_cosine"]


def test_three_models_fit_into_eighty_columns_with_every_cell_on_one_line() -> None:
    text = printed(comparison(["base", "runs/nli/model", "runs/stsb/model"]))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.count("-0.0411 to -0.0312") == 2


def test_where_columns_do_not_fit_cells_wrap_and_nothing_is_cut() -> None:
    names = ["sentence-transformers/all-MiniLM-L6-v2", *[f"runs/number-{run}/model" for run in range(4)]]
    text = printed(comparison(names))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.count("-0.0411 to") == text.count("-0.0312") == 4
    assert "…" not in text
    header = "".join(text.split("─")[0].split())
    assert all(name[-5:] in header for name in names)


def test_what_looks_like_markup_in_a_name_is_printed() -> None:
    text = printed(comparison(["runs/[red]x", "[/b]"], sets=["set [bold]1"]))
    for name in ("runs/[red]x", "[/b]", "set [bold]1"):
        assert name in text


@pytest.mark.parametrize(("terminal", "coloured"), [(True, True), (False, False)])
def test_only_a_terminal_gets_colour(terminal: bool, coloured: bool) -> None:
    assert ("\x1b[" in printed(comparison(["a", "b"]), terminal=terminal)) is coloured
