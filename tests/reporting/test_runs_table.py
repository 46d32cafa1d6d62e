"""The table of runs keeps every digit at 80 columns, and what it quotes cannot steer a terminal."""

import io
import re

import pytest
from rich.console import Console

from sbert_train.reporting.runs import FinishedRun, compare_runs
from sbert_train.reporting.runs_table import render
from tests.reporting.finished import change, eval_set, finished


def printed(runs: list[FinishedRun], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for part in render(compare_runs(runs), width):
        console.print(part, soft_wrap=not hasattr(part, "columns"))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def runs(count: int) -> list[FinishedRun]:
    return [
        finished(
            f"a_run_of_a_long_name_{i}",
            eval_set(spearman_cosine=change(0.8123, 0.8234 + i / 100)),
            train={"per_device_train_batch_size": 64 + i, "learning_rate": float(f"{i + 1}e-5")},
            data={"train": [{"source": f"a/rather/long/path/of/rows{i}.csv"}]},
        )
        for i in range(count)
    ]


def test_two_runs_side_by_side() -> None:
    lines = [" ".join(line.split()) for line in printed(runs(2)).splitlines()]
    assert "train.learning_rate 1e-05 2e-05" in lines
    assert "stsb, 1,379 pairs" in lines
    after = lines.index("after 0.8234 0.8334")
    assert lines[after - 1] == "before 0.8123 0.8123"
    assert lines[after + 1] == "difference +0.0111 * +0.0211 *"
    assert lines[after + 2] == "95% interval +0.0011 to +0.0211 +0.0111 to +0.0311"
    assert lines[after + 3] == "from a_run_of_a_long_name_0 +0.0100"
    assert lines[-1].startswith("sbert-train eval runs/a_run_of_a_long_name_0/model"), "in one line"


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_no_line_is_too_long_and_no_figure_broken(count: int) -> None:
    text = printed(runs(count))
    table = text[: text.index("* the 95% interval")]
    assert max(map(len, table.splitlines())) <= 80
    figures = re.findall(r"(?<![\d.])\d\.\d{4}(?!\d)", table)
    first = -(-(count - 1) // 4)  # the first run is in each table
    assert len(figures) == (count + first - 1) * 5 + (count - 1)
    assert all(f"{i + 1}e-05" in table for i in range(count))


def test_the_first_run_stands_in_every_table() -> None:
    heads = [line for line in printed(runs(8)).splitlines() if "0.8234" in line]
    assert len(heads) == 2


def test_a_difference_within_chance_has_no_star() -> None:
    noisy = finished("b", eval_set(spearman_cosine=change(0.8, 0.801, margin=0.1)))
    (line,) = (line for line in printed([noisy, *runs(1)]).splitlines() if "difference " in line[:20])
    assert line.split() == ["difference", "+0.0010", "+0.0111", "*"]


def test_an_absent_key_and_a_set_that_a_run_lacks_are_shown_as_such() -> None:
    one = finished("a", eval_set(spearman=change(0.8, 0.82)), head={"dim": 8})
    lines = [" ".join(line.split()) for line in printed([one, finished("b")]).splitlines()]
    assert "head {dim: 8} not there" in lines and "after 0.8200 -" in lines
    assert "Note: without eval sets: b" in lines


def test_a_key_of_train_that_a_run_does_not_set_is_its_default() -> None:
    text = printed([finished("a", train={"eval_steps": 0.1}), finished("b", train={}, trainer=1)])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "train.eval_steps 0.1 default" in lines and "trainer not there 1" in lines


def test_a_mapping_is_one_row_of_compact_yaml_beside_null() -> None:
    head = {"dim": 384, "activation": "sigmoid", "dropout": 0.0}
    one, two = finished("a", model={"head": head}), finished("b", model={"head": None})
    lines = [" ".join(line.split()) for line in printed([one, two], 120).splitlines()]
    row = next(i for i, line in enumerate(lines) if line.startswith("model.head"))
    assert lines[row : row + 2] == ["model.head {dim: 384, activation: sigmoid, null", "dropout: 0.0}"]
    assert not any("model.head." in line for line in lines)


def test_a_value_too_long_for_its_column_is_broken_at_punctuation() -> None:
    named = [
        finished(f"a_run_of_a_long_name_{i}", data={"train": [{"source": f"builtin:contrast/rows{i}"}]})
        for i in range(4)
    ]
    text = printed(named)
    assert text.count("contrast/") == 4 and text.count("rows") == 4 and text.count("builtin:") == 4


def test_runs_of_one_configuration_say_so() -> None:
    same = [
        finished("a", eval_set(spearman=change(0.8, 0.82)), output_dir="x"),
        finished("b", eval_set(spearman=change(0.8, 0.82)), output_dir="x"),
    ]
    assert "configuration: the same" in printed(same)


def test_what_runs_bring_is_printed_as_text() -> None:
    evil = "\x1b[2Jx"
    bad = finished(
        evil, eval_set(evil, more={evil: change(0.8, 0.82)}), **{evil: evil}, prompt="[red]kept[/red]"
    )
    worse = finished("b", eval_set(evil, fingerprint="f2", more={evil: change(0.8, 0.82)}))
    text = printed([bad, worse])
    assert "\x1b" not in text and "\\x1b[2Jx" in text and "[red]kept[/red]" in text
