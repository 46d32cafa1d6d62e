"""When a run may use a folder that is there already, and what it leaves alone."""

import json
from pathlib import Path

import pytest

from sbert_train.errors import ConfigError
from sbert_train.training import checkpoints
from sbert_train.training.run_folder import RunFolder


def write_checkpoint(folder: RunFolder, step: int) -> Path:
    checkpoints.begin_stage(folder.checkpoints, step)
    (checkpoints.stage_of(folder.checkpoints, step) / "weights").write_text("1")
    return checkpoints.seal(folder.checkpoints, step).path


def save(stage: Path) -> None:
    (stage / "2_Dense").mkdir(parents=True)
    (stage / "model.safetensors").write_text("1")
    (stage / "2_Dense" / "model.safetensors").write_text("2")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """The folder of a finished run."""
    folder = RunFolder(tmp_path / "run")
    folder.begin("seed: 1\n")
    write_checkpoint(folder, 1)
    folder.save_model(save)
    (folder.model / "README.md").write_text("card")
    folder.report.write_text("{}")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_or_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        folder = RunFolder(tmp_path / name)
        folder.require_ours()
        folder.begin("seed: 1\n")
        assert folder.config.read_text() == "seed: 1\n" and folder.environment.is_file()


def test_the_same_configuration_may_be_repeated_another_may_not(folder: RunFolder) -> None:
    folder.require_replaceable("seed: 1\n")
    with pytest.raises(ConfigError, match=r"holds a run with another configuration; .* --overwrite"):
        folder.require_replaceable("seed: 2\n")


def test_a_run_whose_configuration_is_lost_is_not_replaced(folder: RunFolder) -> None:
    folder.config.unlink()
    with pytest.raises(ConfigError, match=r"holds a run with another configuration; .* --overwrite"):
        folder.require_replaceable("seed: 1\n")


def test_a_run_that_ended_before_its_first_step_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin("seed: 1\n")
    folder.checkpoints.mkdir()
    folder.require_replaceable("seed: 2\n")
    for file in (folder.log, folder.report, folder.model):
        file.touch()
        with pytest.raises(ConfigError, match="holds a run with another configuration"):
            folder.require_replaceable("seed: 2\n")
        file.unlink()
    write_checkpoint(folder, 1)
    with pytest.raises(ConfigError, match="holds a run with another configuration"):
        folder.require_replaceable("seed: 2\n")


def test_a_folder_of_something_else_is_never_used(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "config.yaml").write_text("seed: 1")
    for environment in (None, "[]", "not JSON", '{"packages": {}}'):
        if environment is not None:
            (tmp_path / "environment.json").write_text(environment)
        with pytest.raises(ConfigError, match="holds files that are not those of a run"):
            RunFolder(tmp_path).require_ours()
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        RunFolder(tmp_path / "thesis.tex").require_ours()


def test_what_a_killed_process_leaves_is_in_nobodys_way(tmp_path: Path) -> None:
    for name in (".lock", ".environment.json.partial"):
        (tmp_path / name).touch()
    (tmp_path / "checkpoints").mkdir()  # as Trainer makes it, before anything is known to be written
    RunFolder(tmp_path).require_ours()
    (tmp_path / "checkpoints" / "mine").touch()
    with pytest.raises(ConfigError, match="holds files that are not those of a run"):
        RunFolder(tmp_path).require_ours()
    (tmp_path / "checkpoints" / "mine").unlink()
    (tmp_path / ".bashrc").touch()
    with pytest.raises(ConfigError, match="holds files that are not those of a run"):
        RunFolder(tmp_path).require_ours()


def test_beginning_removes_what_a_run_wrote_and_nothing_else(folder: RunFolder) -> None:
    mine = [
        folder.root / "notes.md",
        folder.checkpoints / "checkpoint-1" / "why.txt",
        folder.checkpoints / "checkpoint-1.bak" / "weights",
        folder.checkpoints / "checkpoint-7" / "not-ours",
        folder.checkpoints / ".partial-checkpoint-x" / "weights",
    ]
    (folder.checkpoints / ".partial-checkpoint-3").mkdir()
    for file in mine:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    folder.begin("seed: 2\n")
    assert folder.config.read_text() == "seed: 2\n"
    assert names(folder.root) == [
        ".model-files.json",
        "checkpoints",
        "config.yaml",
        "environment.json",
        "model",
        "notes.md",
    ]
    assert all(file.read_text() == "mine" for file in mine)
    assert (folder.model / "model.safetensors").exists(), "until there is another"
    assert names(folder.checkpoints / "checkpoint-1") == ["why.txt"]
    assert not (folder.checkpoints / ".partial-checkpoint-3").exists()


def test_what_a_checkpoint_of_another_run_shall_replace_stays_where_that_is_damaged_meanwhile(
    folder: RunFolder, tmp_path: Path
) -> None:
    other = RunFolder(tmp_path / "other")
    chosen = write_checkpoint(other, 7)
    (chosen / "weights").write_text("2")
    before = {path: path.read_bytes() for path in folder.root.rglob("*") if path.is_file()}
    with pytest.raises(
        ConfigError, match=r"checkpoint-7 is not whole any more: the content of weights has changed"
    ):
        folder.prepare("seed: 2\n", checkpoints.Checkpoint(chosen, 7))
    assert before == {path: path.read_bytes() for path in folder.root.rglob("*") if path.is_file()}
    (chosen / "weights").write_text("1")
    folder.prepare("seed: 2\n", checkpoints.Checkpoint(chosen, 7))
    assert names(folder.checkpoints) == ["checkpoint-7"] and folder.config.read_text() == "seed: 2\n"


def test_a_folder_with_a_checkpoint_is_that_of_a_run_whatever_became_of_the_rest(folder: RunFolder) -> None:
    folder.environment.write_text("")  # as a power cut may leave it
    folder.require_ours()


def test_a_model_replaces_that_of_an_earlier_run(folder: RunFolder) -> None:
    assert folder.save_model(save) is None
    assert names(folder.root)[-1] == "report.json" and names(folder.model) == ["2_Dense", "model.safetensors"]
    (folder.model / "2_Dense" / "mine").mkdir()
    (folder.model / "2_Dense" / "mine" / "link").symlink_to(folder.root)
    assert folder.save_model(save) == folder.root / "model.before-1"
    assert folder.save_model(save) is None
    assert (folder.root / "model.before-1" / "2_Dense" / "mine" / "link").is_symlink()
    assert [name for name in names(folder.root) if "model" in name] == [
        ".model-files.json",
        "model",
        "model.before-1",
    ]


def test_a_model_that_lies_elsewhere_is_left_there(folder: RunFolder, tmp_path: Path) -> None:
    folder.model.rename(tmp_path / "elsewhere")
    folder.model.symlink_to(tmp_path / "elsewhere")
    folder.save_model(save)
    assert (tmp_path / "elsewhere" / "README.md").read_text() == "card" and not folder.model.is_symlink()


def test_a_model_is_there_whole_or_not_at_all(folder: RunFolder) -> None:
    def fail(stage: Path) -> None:
        save(stage)
        (stage / "model.safetensors").write_text("half")
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        folder.save_model(fail)
    assert (folder.model / "model.safetensors").read_text() == "1" and names(folder.root)[
        0
    ] != ".model.partial"


def test_a_run_that_goes_on_forgets_what_it_logged_after_its_checkpoint(folder: RunFolder) -> None:
    lines = [json.dumps({"step": step, "loss": 1.0}) for step in (1, 2, 2, 3)]
    folder.log.write_text("\n".join([*lines, '{"step": 2, "lo']))
    folder.go_on("seed: 1\n", 2)
    assert folder.log.read_text().splitlines() == lines[:3]
    assert folder.report.exists() and folder.model.exists(), "until there are others"


def test_a_folder_that_cannot_be_made_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("anchor,positive")
    with pytest.raises(
        ConfigError, match=r"output_dir: .*pairs.csv/run cannot be made, as .*pairs.csv is a file"
    ):
        RunFolder(tmp_path / "pairs.csv" / "run").require_ours()
    RunFolder(tmp_path / "a" / "b").require_ours()
    assert not (tmp_path / "a").exists(), "a check makes nothing"
