"""One run at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sbert_train.errors import ConfigError

FILE = ".lock"

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold a folder for this process for as long as the block lasts. A folder that had to be made for the lock and is
    still empty at the end is removed.

    The lock is one of POSIX records (fcntl(2)): the system lets go of it when the process ends, however it ends, and
    processes that it has started do not hold it. Without fcntl nothing is locked.

    Raises:
        ConfigError: another process holds the folder.
    """
    if fcntl is None:
        yield
        return
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    file = root / FILE
    try:
        opened = _acquired(file)
    except OSError as problem:
        raise ConfigError(
            f"output_dir: {root} cannot be written to: {problem.strerror or problem}; choose another folder"
        ) from problem
    try:
        yield
    finally:
        file.unlink(missing_ok=True)  # while it is held: who opens it now makes a new one
        os.close(opened)
        for folder in made:
            with suppress(OSError):  # it holds something
                folder.rmdir()


def _acquired(file: Path) -> int:
    """The file, open and locked by this process."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except FileNotFoundError:
            if file.parent.is_dir():  # one that takes no files
                raise
            continue  # the one who had made the folder has removed it meanwhile
        try:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(opened, file):
                os.ftruncate(opened, 0)
                os.write(opened, f"{os.getpid()}\n".encode())
                return opened
        except (BlockingIOError, PermissionError) as problem:  # which of the two depends on the system
            holder = os.read(opened, 20).decode(errors="replace").strip()
            os.close(opened)
            who = f" (process {holder})" if holder.isdigit() else ""
            raise ConfigError(
                f"output_dir: another run{who} is writing to {file.parent}; wait for it, or choose another folder"
            ) from problem
        os.close(opened)  # the one who held it before has removed it meanwhile


def _is_at(opened: int, file: Path) -> bool:
    """Whether the open file still bears its name."""
    try:
        return os.path.samestat(os.fstat(opened), file.stat())
    except FileNotFoundError:
        return False
