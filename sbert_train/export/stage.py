"""Writing a folder so that it is there whole or not at all, and never over what is not ours.

An export grows in a hidden folder beside its place, is checked there, and is moved to its place at the end. Its
export.json lists its files, by which a later export knows that it may replace them.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sbert_train.errors import ExportError

MANIFEST = "export.json"


@contextmanager
def staged(output: Path) -> Iterator[Path]:
    """A new folder to write into, which becomes `output` at the end of the block unless an exception leaves it.

    The block has to call `write_manifest` as the last thing.

    Raises:
        ExportError: `output` is a file or holds what no export wrote, or its place cannot be written to.
    """
    output = output.resolve()
    require_writable(output)
    stage = output.with_name(f".{output.name}.partial-{os.getpid()}")
    with _no_place(output):
        stage.mkdir(parents=True)
    try:
        yield stage
        with _no_place(output):
            _replace(output, stage)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def require_writable(output: Path) -> None:
    """Check that a folder is new, empty, or an export that nobody has added to.

    Raises:
        ExportError: it is not.
    """
    if not output.exists():
        return
    if not output.is_dir():
        raise ExportError(f"{output} is a file; --output names a folder")
    strangers = sorted(set(files_of(output)) - set(_listed(output)))
    if strangers:
        raise ExportError(
            f"{output} is not empty, and {strangers[0]} in it was not written by an export; choose another --output"
        )


def write_manifest(stage: Path, content: Mapping[str, object]) -> None:
    """Write export.json: what is told, and the files that lie in the folder now, itself included."""
    text = json.dumps(
        {**content, "files": sorted([*files_of(stage), MANIFEST])}, indent=2, ensure_ascii=False
    )
    (stage / MANIFEST).write_text(text + "\n", encoding="utf-8")


@contextmanager
def _no_place(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportError(f"{output} cannot be written: {error}; choose another --output") from error


def files_of(folder: Path) -> list[str]:
    """The files below a folder, sorted, with / between the parts of their paths."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def _listed(folder: Path) -> list[str]:
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return [str(file) for file in files]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _replace(output: Path, stage: Path) -> None:
    if not output.exists():
        stage.rename(output)
        return
    before = output.with_name(f".{output.name}.before-{os.getpid()}")
    output.rename(before)
    stage.rename(output)
    shutil.rmtree(before)
