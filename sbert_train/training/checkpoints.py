"""Checkpoints on disk: each is there whole or not at all, with a manifest by which it is known to be whole.

A checkpoint grows in a hidden folder, whose name nobody takes for a checkpoint's. When all of it is on the disk it gets
its manifest (size and sha256 of every file), and then its name. Only after that are older ones removed.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from safetensors import SafetensorError

from sbert_train.data.hints import one_line
from sbert_train.errors import TrainingError

MANIFEST = "manifest.json"
STATE = "trainer_state.json"
_PARTIAL, _REPLACED = ".partial-", ".replaced-"
_NAME = re.compile(r"checkpoint-([0-9]{1,18})")


@dataclass(frozen=True)
class Checkpoint:
    """A folder that bears the name of a checkpoint."""

    path: Path
    step: int

    @property
    def name(self) -> str:
        return self.path.name

    def read_json(self, name: str) -> Any:
        """What a file of a whole checkpoint holds."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))


def checkpoint_at(path: Path) -> Checkpoint | None:
    """The checkpoint that a folder's name says it is; None for other names, and for what is no folder."""
    found = _NAME.fullmatch(path.name)
    return Checkpoint(path, int(found[1])) if found and path.is_dir() and not path.is_symlink() else None


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """Those in a folder, whole or not, by step."""
    if not folder.is_dir():
        return []
    found = (checkpoint_at(path) for path in folder.iterdir())
    return sorted((one for one in found if one is not None), key=lambda one: one.step)


def stage_of(folder: Path, step: int) -> Path:
    """The hidden folder in which the checkpoint of a step grows; the same for all processes of a run."""
    return folder / f"{_PARTIAL}checkpoint-{step}"


def begin_stage(folder: Path, step: int) -> None:
    """Make the hidden folder, in place of one that was left by a run that was killed.

    Raises:
        OSError: there is no room, or no right to write.
    """
    clean_up(folder)
    stage_of(folder, step).mkdir(parents=True)


def seal(folder: Path, step: int) -> Checkpoint:
    """Give what lies in the hidden folder its manifest, and then its name, once all of it is on the disk.

    Raises:
        OSError: the disk could not take it; the hidden folder is still there, and no other one has changed.
    """
    stage, place = stage_of(folder, step), folder / f"checkpoint-{step}"
    files = {path.name: _on_disk(path) for path in sorted(stage.iterdir())}
    (stage / MANIFEST).write_text(
        json.dumps({"step": step, "files": files}, indent=2) + "\n", encoding="utf-8"
    )
    _on_disk(stage / MANIFEST)
    _sync_folder(stage)
    before = folder / f"{_REPLACED}checkpoint-{step}"
    if place.exists():  # a damaged one that was skipped, or one of the same step
        place.rename(before)
    stage.rename(place)
    _sync_folder(folder)
    _let_go(before)
    return Checkpoint(place, step)


def clean_up(folder: Path) -> None:
    """Remove what a run that was killed while it saved has left, and nothing else."""
    if not folder.is_dir():
        return
    for path in folder.glob(f"{_PARTIAL}checkpoint-*"):
        if _NAME.fullmatch(path.name.removeprefix(_PARTIAL)):
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f"{_REPLACED}checkpoint-*"):
        _let_go(path)


def _let_go(replaced: Path) -> None:
    """Remove a checkpoint that another took the place of; one that holds more than a run wrote gets a name again."""
    found = _NAME.fullmatch(replaced.name.removeprefix(_REPLACED))
    if found is None or not replaced.is_dir():
        return
    remove(Checkpoint(replaced, int(found[1])))
    with suppress(OSError):  # it holds something
        replaced.rmdir()
    if replaced.is_dir():
        names = (replaced.with_name(f"checkpoint-{found[1]}.before-{i}") for i in count(1))
        replaced.rename(next(name for name in names if not name.exists()))


def damage(checkpoint: Checkpoint) -> str | None:
    """What is wrong with a checkpoint, in words; None where every file is as it was written."""
    try:
        manifest = checkpoint.read_json(MANIFEST)
        step, files = manifest["step"], dict(manifest["files"])
        told = {str(name): (int(one["size"]), str(one["sha256"])) for name, one in files.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return f"{MANIFEST} is missing or cannot be read"
    if step != checkpoint.step:
        return f"its manifest is that of step {step}"
    for name, (size, sha256) in told.items():
        path = checkpoint.path / name
        if Path(name).name != name or path.is_symlink() or not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size:,} bytes of {size:,}"
        try:
            found = _sha256(path)
        except OSError as problem:
            return f"{name} cannot be read: {problem.strerror or problem}"
        if found != sha256:
            return f"the content of {name} has changed"
    return None


def rotate(folder: Path, *, newest: int, limit: int | None, best: int | None) -> None:
    """Remove the oldest checkpoints over the limit, never the newest and never the best, nor what was the best when one
    that stays was written: without it there would be no going on from that one.

    Args:
        newest: the step of the one that was just written; what bears a later step is left alone.
        limit: how many to keep; None for all.
        best: the step of the one that holds the best model, if there is one.
    """
    if limit is None:
        return
    own = [one for one in list_checkpoints(folder) if one.step <= newest]
    kept = {newest, best or newest}
    for one in reversed(own):
        if len(kept) < limit:
            kept.add(one.step)
    kept |= {best_of(one) or one.step for one in own if one.step in kept}
    for one in own:
        if one.step not in kept:
            remove(one)


def remove(checkpoint: Checkpoint) -> None:
    """Remove the files that its manifest lists; where others lie beside them, these stay, and so does the folder.

    The manifest goes last: what a process leaves that is killed here is known to be ours, and not to be whole.
    """
    try:
        listed = [*checkpoint.read_json(MANIFEST)["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return  # not known to be ours
    for name in [*listed, MANIFEST]:
        if Path(name).name == name:
            (checkpoint.path / name).unlink(missing_ok=True)
    if not any(checkpoint.path.iterdir()):
        checkpoint.path.rmdir()


def best_of(checkpoint: Checkpoint) -> int | None:
    """The step whose model was the best when a checkpoint was written; None where there was none, or it is unknown."""
    try:
        return int(checkpoint.read_json(STATE)["best_global_step"]) or None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def size_of(checkpoints: Iterable[Checkpoint]) -> int:
    """Bytes of all their files together."""
    return sum(path.stat().st_size for one in checkpoints for path in one.path.iterdir() if path.is_file())


@contextmanager
def taken_up(checkpoint: str | Path | None) -> Iterator[None]:
    """Around whatever reads a file of a checkpoint: torch unpickles numbers and tensors only, and a file that is whole
    may still be none that a run wrote.

    Raises:
        TrainingError: it cannot be read, or asks for more than numbers and tensors.
    """
    try:
        yield
    except (UnpicklingError, SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrainingError(
            f"{checkpoint} was not written by a run, and nothing of it is used: {one_line(error)}"
        ) from error


def _on_disk(path: Path) -> dict[str, Any]:
    """The entry of a file in the manifest, once the disk has all of it."""
    with path.open("rb+") as opened:
        os.fsync(opened.fileno())
    return {"size": path.stat().st_size, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    """Have the disk take the names in a folder; where folders cannot be opened (Windows), it does so by itself."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
