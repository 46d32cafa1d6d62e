"""A checkpoint is known to be whole, or known not to be."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbert_train.training import checkpoints
from sbert_train.training.checkpoints import Checkpoint, damage, list_checkpoints


def write(folder: Path, step: int, content: str = "weights") -> Checkpoint:
    checkpoints.begin_stage(folder, step)
    stage = checkpoints.stage_of(folder, step)
    (stage / "model.safetensors").write_text(content)
    (stage / "optimizer.pt").write_text("state")
    return checkpoints.seal(folder, step)


def steps(folder: Path) -> list[int]:
    return [one.step for one in list_checkpoints(folder)]


def test_a_checkpoint_is_absent_until_it_is_whole(tmp_path: Path) -> None:
    checkpoints.begin_stage(tmp_path, 3)
    (checkpoints.stage_of(tmp_path, 3) / "model.safetensors").write_text("weights")
    assert steps(tmp_path) == [] and not list(tmp_path.glob("checkpoint-*"))
    one = checkpoints.seal(tmp_path, 3)
    assert steps(tmp_path) == [3] and damage(one) is None
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]
    assert json.loads((one.path / "manifest.json").read_text())["files"]["model.safetensors"]["size"] == 7


def test_a_checkpoint_gets_its_name_when_the_disk_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    sync, rename = os.fsync, Path.rename

    def syncing(opened: int) -> None:
        synced.add(os.fstat(opened).st_ino)
        sync(opened)

    def renaming(path: Path, target: Path) -> Path:
        assert {one.stat().st_ino for one in (path, *path.iterdir())} <= synced
        synced.clear()
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "rename", renaming)
    one = write(tmp_path, 3)
    assert sorted(path.name for path in one.path.iterdir()) == [
        "manifest.json",
        "model.safetensors",
        "optimizer.pt",
    ]
    assert synced == {tmp_path.stat().st_ino}, "and the disk has the name, too"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)


def point_elsewhere(folder: Path) -> None:
    file = folder / "optimizer.pt"
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def list_a_path(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["../secret"] = manifest["files"].pop("optimizer.pt")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder.parent / "secret").write_text("state")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped bit": (
        lambda f: flip(f / "model.safetensors"),
        "the content of model.safetensors has changed",
    ),
    "a file cut short": (lambda f: (f / "optimizer.pt").write_text("st"), "optimizer.pt has 2 bytes of 5"),
    "a missing file": (lambda f: (f / "optimizer.pt").unlink(), "optimizer.pt is missing"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json is missing or cannot be read"),
    "half a manifest": (lambda f: (f / "manifest.json").write_text('{"step": 3, "fi'), "cannot be read"),
    "a manifest of something else": (lambda f: (f / "manifest.json").write_text("[]"), "cannot be read"),
    "another step": (lambda f: f.rename(f.with_name("checkpoint-4")), "its manifest is that of step 3"),
    "a file that lies elsewhere": (point_elsewhere, "optimizer.pt is missing"),
    "a path out of the folder": (list_a_path, "../secret is missing"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_named(kind: str, tmp_path: Path) -> None:
    one = write(tmp_path, 3)
    assert damage(one) is None
    do, words = DAMAGES[kind]
    do(one.path)
    (found,) = list_checkpoints(tmp_path)
    assert words in (damage(found) or "")


def test_a_checkpoint_takes_the_place_of_one_of_the_same_step(tmp_path: Path) -> None:
    write(tmp_path, 3, "before")
    one = write(tmp_path, 3, "after")
    assert damage(one) is None and (one.path / "model.safetensors").read_text() == "after"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]


@pytest.mark.parametrize(
    ("limit", "best", "kept"),
    [
        (None, None, [1, 2, 3, 10]),
        (1, None, [3, 10]),
        (1, 1, [1, 3, 10]),
        (2, None, [2, 3, 10]),
        (2, 1, [1, 3, 10]),
        (2, 3, [2, 3, 10]),
        (3, 2, [1, 2, 3, 10]),
    ],
)
def test_the_oldest_go_but_never_the_newest_nor_the_best(
    limit: int | None, best: int | None, kept: list[int], tmp_path: Path
) -> None:
    """What bears a later step was passed over as damaged: it does not count, and stays for its owner to look at."""
    for step in (10, 1, 2, 3):
        write(tmp_path, step)
    checkpoints.rotate(tmp_path, newest=3, limit=limit, best=best)
    assert steps(tmp_path) == kept


def test_what_was_the_best_for_one_that_stays_stays(tmp_path: Path) -> None:
    """Else nothing could be gone on from when the newest is damaged, which has just become the best itself."""
    for step, best in ((1, 1), (2, 2), (3, 2), (4, 4)):
        checkpoints.begin_stage(tmp_path, step)
        stage = checkpoints.stage_of(tmp_path, step)
        (stage / "trainer_state.json").write_text(json.dumps({"global_step": step, "best_global_step": best}))
        checkpoints.seal(tmp_path, step)
        checkpoints.rotate(tmp_path, newest=step, limit=2, best=best)
    assert steps(tmp_path) == [2, 3, 4]


def test_what_lies_in_a_checkpoint_that_is_written_again_is_kept(tmp_path: Path) -> None:
    one = write(tmp_path, 3)
    (one.path / "notes.txt").write_text("mine")
    write(tmp_path, 3)
    assert (tmp_path / "checkpoint-3.before-1" / "notes.txt").read_text() == "mine"
    assert damage(one) is None and not (one.path / "notes.txt").exists()


def test_a_checkpoint_of_which_only_a_part_was_removed_is_removed_later(tmp_path: Path) -> None:
    """By a process that was killed while it did so."""
    one = write(tmp_path, 3)
    (one.path / "model.safetensors").unlink()
    assert damage(one) == "model.safetensors is missing"
    write(tmp_path, 4)
    checkpoints.rotate(tmp_path, newest=4, limit=1, best=None)
    assert steps(tmp_path) == [4]


@pytest.mark.parametrize("killed_at", [1, 2, 3])
def test_a_checkpoint_is_known_to_be_ours_until_all_of_it_is_removed(
    killed_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, removed = write(tmp_path, 3), 0
    unlink = Path.unlink

    def unlinking(path: Path, **options: Any) -> None:
        nonlocal removed
        removed += 1
        if removed == killed_at:
            raise KeyboardInterrupt
        unlink(path, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", unlinking)
        checkpoints.remove(one)
    assert (damage(one) is None) == (killed_at == 1)
    checkpoints.remove(one)
    assert not one.path.exists()


def test_what_a_manifest_lists_outside_of_its_folder_is_not_removed(tmp_path: Path) -> None:
    one = write(tmp_path, 3)
    list_a_path(one.path)
    checkpoints.remove(one)
    assert (tmp_path / "secret").read_text() == "state"
    assert [path.name for path in one.path.iterdir()] == ["optimizer.pt"], "which it does not list any more"


def test_what_is_not_ours_is_never_removed(tmp_path: Path) -> None:
    mine = [
        tmp_path / "checkpoint-1" / "photo.jpg",
        tmp_path / "checkpoint-2-keep" / "weights",
        tmp_path / ".partial-checkpoint-mine" / "weights",
        tmp_path / "checkpoint-3" / "notes.md",
    ]
    write(tmp_path, 3)
    write(tmp_path, 4)
    for file in mine:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    target = write(tmp_path / "other", 2).path
    (tmp_path / "checkpoint-2").symlink_to(target)
    checkpoints.rotate(tmp_path, newest=4, limit=1, best=None)
    checkpoints.clean_up(tmp_path)
    assert all(file.read_text() == "mine" for file in mine)
    assert [path.name for path in (tmp_path / "checkpoint-3").iterdir()] == ["notes.md"]
    assert (target / "manifest.json").exists(), "a link is none of ours"


def test_what_a_killed_process_left_goes_with_the_next_checkpoint(tmp_path: Path) -> None:
    checkpoints.begin_stage(tmp_path, 3)
    (tmp_path / ".replaced-checkpoint-2").mkdir()
    write(tmp_path, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-4"]
