"""Names of files, columns and models cannot steer the terminal on which they are told."""

import csv
import sys
from pathlib import Path

import pytest

from sbert_train.cli import main
from sbert_train.errors import DataError, printable
from tests.security.conftest import Refusal
from tests.tiny import make_encoder
from tests.training.runs import write_scored

CLEAR = "\x1b[2J\x1b]0;owned\x07"
TURN = "\u202egnp.exe"


def raw(text: str) -> list[str]:
    return [char for char in text if not char.isprintable() and char != "\n"]


def test_a_message_has_no_control_characters() -> None:
    assert str(DataError(f"a{CLEAR}\r{TURN}\nb")) == "a\\x1b[2J\\x1b]0;owned\\x07\\r\\u202egnp.exe\nb"
    assert printable("é 中 \U0001f600") == "é 中 \U0001f600"
    assert printable("\udc80").encode() == b"\\udc80"  # a file name that is not UTF-8 can be printed, too


@pytest.mark.parametrize("name", [CLEAR, TURN, "\x9b31m", "\b\b\b"])
def test_no_name_of_a_file_is_told_raw(refused: Refusal, tmp_path: Path, tiny_model: Path, name: str) -> None:
    assert raw(name)
    folder = tmp_path / f"m{name}"
    (tmp_path / f"a{name}.csv").write_text("sentence1\n")
    (tmp_path / f"empty{name}.csv").write_text("")
    for told in (
        refused("eval", tiny_model, "--data", tmp_path / f"a{name}.csv"),
        refused("eval", tiny_model, "--data", tmp_path / f"empty{name}.csv"),
        refused("eval", tiny_model, "--data", tmp_path / f"none{name}.csv"),
        refused("eval", folder, "--data", write_scored(tmp_path)),
        refused("export", folder, "--output", tmp_path / "out"),
        refused("fit", "--config", f"run{name}.yaml"),
        refused(
            "fit", "--config", Path(__file__).parents[2] / "configs" / "quickstart.yaml", f"{name}={name}"
        ),
    ):
        assert not raw(told), told


def test_no_column_or_value_is_told_raw(refused: Refusal, tmp_path: Path, tiny_model: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["sentence1", "sentence2", "score", CLEAR], ["a", "b", CLEAR, "x"]])
    told = refused("eval", tiny_model, "--data", tmp_path / "rows.csv")
    assert "owned" in told and not raw(told)
    column = ("--column", f"anchor={CLEAR}x", "--column", "positive=none")
    told = refused("eval", tiny_model, "--data", tmp_path / "rows.csv", *column)
    assert "owned" in told and not raw(told)


def test_the_table_shows_markup_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    models = ["[red]x", "[/]y"]
    for seed, name in enumerate(models):
        make_encoder(seed=seed).save(name)
    arguments = ["eval", *models, "--data", str(write_scored(tmp_path))]
    monkeypatch.setattr(sys, "argv", ["sbert-train", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    told = capsys.readouterr().out
    assert "[red]x" in told and "[/]y" in told
    assert not raw(told)
