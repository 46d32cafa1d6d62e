"""A finished run is read; one that is not, or that is broken, is named in a line that says what to do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sbert_train.errors import CommandError
from sbert_train.training.finished_runs import read_runs
from tests.reporting.finished import change, eval_set, report, write_run
from tests.training.runs import run

RESULT = eval_set(spearman=change(0.8, 0.82))


def lines_of(*places: Path) -> list[str]:
    with pytest.raises(CommandError) as caught:
        read_runs([str(place) for place in places])
    return str(caught.value).splitlines()


def test_a_run_is_read_by_its_folder_its_configuration_or_its_report(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", report(RESULT, best="eval_stsb_spearman"), seed=1)
    two = write_run(tmp_path / "two", report(RESULT, train_runtime=9.0, pairs_per_second=2.5), seed=2)
    three = write_run(tmp_path / "three", report())
    found = read_runs([str(one / "config.yaml"), str(two), str(three / "report.json")])
    assert [(each.name, each.config["seed"]) for each in found] == [("one", 1), ("two", 2), ("three", 42)]
    assert found[0].selected_by == "stsb_spearman" and found[1].selected_by is None
    assert found[0].sets == (RESULT,) and found[2].sets == ()
    assert found[0].facts["train_runtime"] == 12.5 and found[0].facts["pairs_per_second"] == 51.2
    assert found[1].facts["train_runtime"] == 9.0 and found[1].facts["pairs_per_second"] == 2.5
    assert found[0].facts["versions.torch"] == "2.13.0"
    assert found[0].facts["rows of train pairs"] == 100 and found[0].facts["rows of eval stsb"] == 1379


def test_runs_whose_folders_have_one_name_are_told_apart(tmp_path: Path) -> None:
    for parent in "ab":
        write_run(tmp_path / parent / "run", report(RESULT))
    write_run(tmp_path / "c", report(RESULT))
    places = [str(tmp_path / parent / "run") for parent in "ab"]
    assert [each.name for each in read_runs([*places, str(tmp_path / "c")])] == [*places, "c"]


def test_each_run_that_cannot_be_compared_has_a_line(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good", report(RESULT))
    unfinished = write_run(tmp_path / "unfinished", None)
    (unfinished / "log.jsonl").write_text('{"step": 1}\n{"step": 7}\n')
    (good / "model").mkdir()
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / "seeds.json").write_text("{}")
    broken = write_run(tmp_path / "broken", report(RESULT))
    (broken / "report.json").write_text('{"training": ')
    (tmp_path / "uni.csv").touch()
    (good / "log.jsonl").touch()
    files = (tmp_path / "uni.csv", good / "log.jsonl")
    lines = lines_of(
        *files,
        good,
        tmp_path / "none",
        unfinished,
        good / "model",
        tmp_path / "series",
        broken,
        good / "config.yaml",
    )
    expected = [
        f"{tmp_path}/uni.csv: a file; expected the folder of a run",
        f"{good}/log.jsonl: a file; expected the folder of a run; the run is {good}",
        f"{tmp_path}/none: no such folder; expected that of a run",
        f"{unfinished}: this run is not finished (step 7 is the last in its log), as no report.json is in it; "
        f"`sbert-train fit --config {unfinished}/config.yaml` goes on",
        f"{good}/model: not the folder of a run, as no config.yaml is in it; the run is {good}",
        f"{tmp_path}/series: not the folder of a run, as no config.yaml is in it; it holds a series: name its runs, "
        f"such as {tmp_path}/series/seed-1",
        f"{broken}/report.json: cannot be read as what a run writes: ",
        f"{good}: named twice; name each run once",
    ]
    assert len(lines) == len(expected)
    assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True)), lines


@pytest.mark.parametrize(
    "spoiled",
    [
        [],
        {},
        {"training": None},
        {**report(RESULT), "evaluation": {"tasks": [{}]}},
        {**report(RESULT), "evaluation": {"tasks": "x"}},
        {**report(RESULT), "data": [1]},
        {**report(RESULT), "training": {"steps": 1, "epochs": 1}},
    ],
)
def test_a_report_that_is_none_is_a_line(spoiled: Any, tmp_path: Path) -> None:
    good, bad = write_run(tmp_path / "good", report(RESULT)), write_run(tmp_path / "bad", spoiled)
    (line,) = lines_of(good, bad)
    assert line.startswith(f"{bad}/report.json: not the report of a run: ") and "--overwrite" in line


@pytest.mark.parametrize("text", ["[]", "seed: 1", "data: 1\nmodel: 2", "a: &a [1]\nb: *a", "\x00"])
def test_a_configuration_that_is_none_is_a_line(text: str, tmp_path: Path) -> None:
    good, bad = write_run(tmp_path / "good", report(RESULT)), write_run(tmp_path / "bad", report(RESULT))
    (bad / "config.yaml").write_text(text)
    (line,) = lines_of(good, bad)
    assert line.startswith(f"{bad}/config.yaml: ")


def test_one_run_is_not_enough(tmp_path: Path) -> None:
    (line,) = lines_of(write_run(tmp_path / "one", report(RESULT)))
    assert "expected the folders of two runs or more" in line and "sbert-train eval" in line


def test_what_fit_writes_is_read(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model, train={"num_train_epochs": 1})
    other, _ = run(tmp_path, tiny_model, output_dir=str(tmp_path / "other"), train={"max_steps": 3})
    one, two = read_runs([str(each.folder.root) for each in (result, other)])
    assert one.selected_by == "pairs_spearman_cosine"
    assert (one.facts["steps"], two.facts["steps"]) == (6, 3)
    told = json.loads(result.folder.report.read_text())["evaluation"]["tasks"][0]
    after = one.sets[0].metrics["spearman_cosine"].after
    assert after.value == told["scores"]["after"]["spearman_cosine"]["value"]
    assert one.sets[0].fingerprint == two.sets[0].fingerprint


def test_comparing_runs_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, sbert_train.commands.compare, sbert_train.reporting.runs_table, "
        "sbert_train.training.finished_runs\n"
        "print(*{'torch', 'numpy', 'transformers', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"pydantic"}
