"""Two runs never write into one folder at once, and a dead one holds nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbert_train.errors import ConfigError
from sbert_train.training.lock import locked

HOLD = """
import os, sys, time
from pathlib import Path
from sbert_train.training.lock import locked
with locked(Path(sys.argv[1])):
    child = os.fork() if sys.argv[2] == "fork" else None
    if child != 0:
        print(child, flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(root: Path, how: str = "alone") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that holds a folder, and what it said."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root), how], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_second_run_is_refused_with_the_number_of_the_first(tmp_path: Path) -> None:
    with holder(tmp_path / "run") as (process, _):
        with (
            pytest.raises(
                ConfigError, match=rf"another run \(process {process.pid}\) is writing to .*run; wait"
            ),
            locked(tmp_path / "run"),
        ):
            pytest.fail("it got in")
        process.kill()
        process.wait()
        with locked(tmp_path / "run"):
            pass
    assert not (tmp_path / "run" / ".lock").exists()


def test_the_children_of_a_dead_run_hold_nothing(tmp_path: Path) -> None:
    with holder(tmp_path / "run", "fork") as (process, child):
        process.kill()
        process.wait()
        try:
            os.kill(int(child), 0)  # it lives
            with locked(tmp_path / "run"):
                assert (tmp_path / "run" / ".lock").read_text() == f"{os.getpid()}\n"
        finally:
            os.kill(int(child), signal.SIGKILL)
            time.sleep(0.01)


def test_a_folder_that_another_run_removes_as_it_leaves_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, open_file = tmp_path / "run", os.open
    left: list[Path] = []

    def open_after_the_other_has_left(path: Path, *arguments: int) -> int:
        if not left:
            root.rmdir()
            left.append(root)
        return open_file(path, *arguments)

    monkeypatch.setattr(os, "open", open_after_the_other_has_left)
    with locked(root):
        assert left and (root / ".lock").read_text() == f"{os.getpid()}\n"


def test_a_folder_that_was_made_for_nothing_goes_again(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wrong"), locked(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / ".lock").read_text() == f"{os.getpid()}\n"
        raise ConfigError("wrong")
    assert not (tmp_path / "a").exists()
    with locked(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "config.yaml").touch()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["config.yaml"]


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match="cannot be written to: Not a directory"),
        locked(tmp_path / "file" / "run"),
    ):
        pass
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "file")
    with pytest.raises(ConfigError, match="cannot be written to"), locked(tmp_path / "run"):
        pass
    assert (tmp_path / "file").read_text() == "", "nobody follows a link to write a number"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="this system has no folder that takes no files")
def test_a_folder_that_takes_no_files_is_told() -> None:
    """To root it says that there is no such file, to others that they may not."""
    with pytest.raises(ConfigError, match="cannot be written to"), locked(Path("/proc/self")):
        pass
