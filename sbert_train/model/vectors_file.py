"""A .npy file of vectors that is filled in any order without being held in memory: there whole or not at all."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sbert_train.errors import EncodingError

UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def vectors_file(path: Path, shape: tuple[int, int]) -> Iterator[NDArray[np.float32]]:
    """A memory-mapped float32 array to fill, which becomes the file at the end of the block, in place of what was there
    before, unless an exception leaves it.

    Raises:
        EncodingError: there is a folder of that name, or the disk has no room or cannot be written to.
    """
    stage = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with _no_place(path):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            array = np.lib.format.open_memmap(stage, mode="w+", dtype=np.float32, shape=shape)
            _reserve(stage)
        yield array
        with _no_place(path):
            array.flush()
            del array
            stage.replace(path)
    finally:
        with suppress(OSError):  # it is not there, mostly because it was renamed
            stage.unlink()


def _reserve(file: Path) -> None:
    """Have the disk set aside all of a file: a memory map that finds no room later ends the process with a signal."""
    if not hasattr(os, "posix_fallocate"):  # not on every system
        return
    with file.open("r+b") as opened:
        try:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise


@contextmanager
def _no_place(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EncodingError(
            f"{path} cannot be written: {error.strerror or error}; make room there, or choose another output"
        ) from error
