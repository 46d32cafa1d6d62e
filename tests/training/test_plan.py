"""The plan of a run says what a person would want to know before the first step."""

import json
from pathlib import Path

import pytest

from tests.training.runs import run, sentences, write_csv


def test_the_plan_tells_how_many_texts_are_cut_before_they_are_tokenised(
    tmp_path: Path, tiny_model: Path
) -> None:
    rows = sentences(16)
    rows[3] = ("cat " * 1_000, rows[3][1], "dog " * 1_000, 1.0)
    train = write_csv(tmp_path / "train.csv", ("anchor", "positive", "extra"), [row[:3] for row in rows])
    scored = write_csv(
        tmp_path / "dev.csv", ("sentence1", "sentence2", "score"), [(*row[:2], row[3]) for row in rows]
    )
    data = {
        "train": [{"source": str(train)}],
        "eval": [{"source": str(scored), "task": "sts", "score_range": [0, 5]}],
    }
    _, lines = run(tmp_path, tiny_model, data=data, train={"max_steps": 1})
    told = "cut before tokenising: 1 text of more than 1,024 characters"
    assert [line for line in lines if line.startswith("train ")] == [
        f"train      train: 16 rows read, all kept; {told}"
    ]
    assert any(line.startswith("eval ") and line.endswith(f"(sts); {told}") for line in lines)


def test_rows_that_the_policy_keeps_or_drops_are_told_in_the_plan_the_report_and_the_card(
    tmp_path: Path, tiny_model: Path
) -> None:
    rows = [(one, other, score) for one, other, _, score in sentences(16)]
    rows[1], rows[2], rows[3] = ("", rows[1][1], 1.0), (*rows[2][:2], 5.5), (*rows[3][:2], -1.0)
    source = write_csv(tmp_path / "pairs.csv", ("sentence1", "sentence2", "score"), rows)
    policy = {"empty_text": "keep", "score_out_of_range": "drop"}
    train = {"source": str(source), "score_range": [0, 5], "policy": policy}
    objective = {"name": "cosine_regression"}
    result, lines = run(tmp_path, tiny_model, data={"train": [train]}, objective=objective)
    told = "pairs: 16 rows read, 14 kept (2 dropped: score out of range; kept: empty sentence1 1)"
    assert f"train      {told}" in lines
    account = json.loads(result.folder.report.read_text())["data"][0]
    assert account["dropped"] == {"score out of range": 2} and account["kept_with"] == {"empty sentence1": 1}
    assert told in (result.folder.model / "README.md").read_text()


def test_what_is_told_of_a_set_smaller_than_a_batch_is_true(tmp_path: Path, tiny_model: Path) -> None:
    result, lines = run(tmp_path, tiny_model, train={"per_device_train_batch_size": 64, "max_steps": 2})
    assert "batches    1 an epoch, of 48 rows; 2 steps in 2 epochs" in lines
    assert any(
        line.startswith("negatives  each anchor sees 47 in-batch + 48 hard negatives;") for line in lines
    )
    training = json.loads(result.folder.report.read_text())["training"]
    assert training["pairs_per_second"] * training["train_runtime"] == pytest.approx(96)
    assert lines[-2].startswith(f"trained    {training['pairs_per_second']:,.1f} rows a second")
    assert f"input took {training['input_share']:.1%} of the steps" in lines[-2]
    assert lines[-1].startswith(
        f"kept       the model of step {training['best_step']} of 2, the best by eval_pairs_"
    )
