"""What is recorded is not run again, and a run that fails does not stop the queue."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import run as running
from benchmarks.quality.__main__ import main, parser
from benchmarks.quality.experiments import EXPERIMENTS, SEEDS
from benchmarks.quality.record import append_record, is_recorded, read_records
from benchmarks.queues import only_queue
from tests.benchmarks.records import record


def test_records_come_back_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    assert read_records(file) == []
    records = [
        record("trecqa", "base", None, trecqa_test_map=0.5),
        record("trecqa", "peer", 1, stsb_dev_spearman=1 / 3),
    ]
    for one in records:
        append_record(file, one)
    assert read_records(file) == records


def test_the_queue_does_all_experiments_of_a_seed_before_the_next_seed() -> None:
    runs = running.runs_of(list(EXPERIMENTS), ("base", "peer"), SEEDS)
    all_of_them = list(EXPERIMENTS)
    ours_alone = ("stsb_cosent_1e-4", "stsb_in_turn", "trecqa_head")
    of_the_peer = [name for name in all_of_them if name not in ours_alone]
    assert (len(all_of_them), len(of_the_peer)) == (9, 6), "three are ours alone"
    assert runs[:9] == [(name, "base", None) for name in all_of_them]
    assert runs[9:15] == [(name, "peer", 42) for name in of_the_peer]
    assert [seed for _, _, seed in runs[9::6]] == [42, 1, 2]
    assert ("trecqa_head", "ours", 42) in running.runs_of(all_of_them, ("ours",), SEEDS)


def test_the_queue_leaves_out_what_is_recorded_and_goes_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append_record(tmp_path / running.RESULTS, record("trecqa", "peer", 1, trecqa_test_map=0.5))
    runs: list[running.Run] = [("trecqa", "peer", 42), ("trecqa", "peer", 1), ("trecqa", "peer", 2)]
    started = []

    def end_with(arguments: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        started.append(arguments[arguments.index("--seed") + 1])
        return subprocess.CompletedProcess(list(arguments), returncode=1 if started == ["42"] else 0)

    monkeypatch.setattr(subprocess, "run", end_with)
    assert running.run_queue(runs, tmp_path) == 1
    assert started == ["42", "2"]
    assert "exit code 1 after 0:00:0" in capsys.readouterr().out


def test_a_second_queue_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with (
        only_queue(tmp_path),
        pytest.raises(SystemExit, match="a queue is at work"),
        only_queue(tmp_path),
    ):
        pass
    with only_queue(tmp_path):  # and the lock does not outlive its queue
        pass


def test_the_command_of_a_run_is_one_that_the_command_line_takes() -> None:
    for one in (("trecqa", "peer", 2), ("snli_pairs", "base", None)):
        _, module, *arguments = running.command(one, "RUNS")
        assert module == "benchmarks.quality"
        args = parser().parse_args(arguments)
        assert (args.command, args.experiment, args.side, args.output) == ("run", *one[:2], Path("RUNS"))
        assert args.seed == (one[2] or SEEDS[0])


def test_the_base_is_judged_and_recorded_without_training(
    folder: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BASE", str(tiny_model))
    made = running.run("snli_softmax", "base", None, folder, tmp_path / "runs")
    assert read_records(tmp_path / "runs" / running.RESULTS) == [made]
    # Its experiment is judged by a classifier, too, which a base has not.
    assert "snli_test" in EXPERIMENTS["snli_softmax"].figures
    kinds = ("spearman", "pearson")
    assert list(made.metrics) == [f"stsb_{split}_{kind}" for split in ("test", "dev") for kind in kinds]
    assert is_recorded([made], "snli_softmax", "base", None)
    assert not is_recorded([made], "snli_softmax", "peer", 42)
    assert made.steps == 0 and made.rows_per_second is None
    assert "fp32" in made.hardware and "torch" in made.versions


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["table", "--results", "nowhere.jsonl"], "nowhere.jsonl: there are no results"),
        (["queue", "--output", "RUNS"], "SBERT_TRAIN_DATA names no folder"),
    ],
)
def test_what_the_command_line_lacks_is_told(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SBERT_TRAIN_DATA", raising=False)
    monkeypatch.setattr("sys.argv", ["quality", *arguments])
    with pytest.raises(SystemExit, match=complaint):
        main()
