"""When a run may use a folder that is there already."""

from pathlib import Path

import pytest

from sbert_train.errors import ConfigError
from sbert_train.training.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """The folder of a finished run."""
    folder = RunFolder(tmp_path / "run")
    folder.begin("seed: 1\n")
    folder.checkpoints.mkdir()
    (folder.checkpoints / "checkpoint-1").mkdir()
    folder.report.write_text("{}")
    return folder


def test_a_new_or_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        folder = RunFolder(tmp_path / name)
        folder.require_usable("", overwrite=False)
        folder.begin("seed: 1\n")
        assert folder.config.read_text() == "seed: 1\n" and folder.environment.is_file()


def test_a_finished_run_may_be_repeated_with_the_same_configuration_only(folder: RunFolder) -> None:
    folder.require_usable("seed: 1\n", overwrite=False)
    with pytest.raises(ConfigError, match=r"holds a run with another configuration; .* --overwrite"):
        folder.require_usable("seed: 2\n", overwrite=False)
    folder.require_usable("seed: 2\n", overwrite=True)


def test_a_run_that_ended_before_its_first_step_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin("seed: 1\n")
    folder.checkpoints.mkdir()
    folder.require_usable("seed: 2\n", overwrite=False)
    for file in (folder.log, folder.report, folder.checkpoints / "checkpoint-1", folder.model):
        file.touch()
        with pytest.raises(ConfigError, match="holds a run with another configuration"):
            folder.require_usable("seed: 2\n", overwrite=False)
        file.unlink()


def test_an_unfinished_run_is_not_thrown_away_unasked(folder: RunFolder) -> None:
    folder.report.unlink()
    with pytest.raises(ConfigError, match=r"checkpoints of an unfinished run; .* --overwrite"):
        folder.require_usable("seed: 1\n", overwrite=False)
    folder.require_usable("seed: 1\n", overwrite=True)


def test_a_folder_of_something_else_is_never_used(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="holds files that are not those of a run"):
        RunFolder(tmp_path).require_usable("", overwrite=True)
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        RunFolder(tmp_path / "thesis.tex").require_usable("", overwrite=False)


def test_beginning_removes_what_a_run_wrote_and_nothing_else(folder: RunFolder) -> None:
    (folder.root / "notes.md").write_text("mine")
    folder.begin("seed: 2\n")
    assert sorted(path.name for path in folder.root.iterdir()) == [
        "config.yaml",
        "environment.json",
        "notes.md",
    ]
    assert folder.config.read_text() == "seed: 2\n"


def test_a_folder_that_cannot_be_made_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("anchor,positive")
    with pytest.raises(
        ConfigError, match=r"output_dir: .*pairs.csv/run cannot be made, as .*pairs.csv is a file"
    ):
        RunFolder(tmp_path / "pairs.csv" / "run").require_usable("", overwrite=False)
    RunFolder(tmp_path / "a" / "b").require_usable("", overwrite=False)
    assert not (tmp_path / "a").exists(), "a check makes nothing"
