"""Whatever is wrong is told in one line, with exit code 2, before anything is written."""

import shutil
import sys
from pathlib import Path

import pytest

from sbert_train.cli import main
from tests.wrong_entry import GOOD_FILES, Wrong, run_with
from tests.wrong_inputs import WRONG_INPUTS


def files_of(folder: Path) -> dict[str, bytes | None]:
    """Path -> content of everything below a folder; None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def prepare(folder: Path, tiny_model: Path, wrong: Wrong) -> None:
    """The working directory of an entry."""
    shutil.copytree(tiny_model, folder / "model")
    written = {} if wrong.config is None else {"run.yaml": wrong.config}
    for name, content in {**GOOD_FILES, **wrong.files, **written}.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if wrong.change is not None:
        wrong.change(folder / "model")


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of a command."""
    monkeypatch.setattr(sys, "argv", ["sbert-train", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize("wrong", WRONG_INPUTS, ids=lambda wrong: wrong.name)
def test_it_is_told_in_one_line_and_nothing_is_written(
    wrong: Wrong,
    tmp_path: Path,
    tiny_model: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare(tmp_path, tiny_model, wrong)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SBERT_TRAIN_NOWHERE", raising=False)
    for name, value in wrong.environ.items():
        monkeypatch.setenv(name, value)
    before = files_of(tmp_path)
    capfd.readouterr()
    assert called(monkeypatch, *wrong.arguments) == 2
    error = capfd.readouterr().err
    assert error.startswith("sbert-train: ") and error.endswith("\n"), error
    assert error.count("\n") == wrong.lines, error
    assert [word for word in wrong.words if word not in error] == [], error
    assert not [value for value in wrong.environ.values() if value and value in error], "a secret was told"
    assert all(char.isprintable() for char in error.replace("\n", "")), "it is safe for a terminal"
    assert files_of(tmp_path) == before, "nothing was written"


def test_there_are_enough_of_them_and_each_is_another() -> None:
    assert len(WRONG_INPUTS) >= 100
    assert len({wrong.name for wrong in WRONG_INPUTS}) == len(WRONG_INPUTS)
    assert all(word for wrong in WRONG_INPUTS for word in wrong.words) and all(w.words for w in WRONG_INPUTS)


def test_what_every_entry_changes_a_part_of_goes_through(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, tiny_model, Wrong("nothing", (), config=run_with()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sbert-train", "fit", "--config", "run.yaml"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code and (tmp_path / "run" / "model").is_dir()
