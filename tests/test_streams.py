"""What can no longer be printed ends no run."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from sbert_train.config import dump_config
from sbert_train.streams import lasting_output
from tests.training.runs import config


def pipe_without_reader() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


def full_disk() -> TextIO:
    return Path("/dev/full").open("w", buffering=1)


NOWHERE = [pipe_without_reader]
if Path("/dev/full").exists():
    NOWHERE.append(full_disk)


@pytest.mark.parametrize("stream", NOWHERE)
def test_what_nobody_reads_is_dropped(
    stream: type[TextIO], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with stream() as broken, pytest.raises(OSError):  # the premise
        try:
            print("the plan", file=broken)
        finally:
            os.dup2(os.open(os.devnull, os.O_WRONLY), broken.fileno())  # so that it can be closed
    with stream() as broken:
        monkeypatch.setattr(sys, "stdout", broken)
        with lasting_output():
            for _ in range(3):
                print("the plan", flush=True)
            print("what is still in the buffer", end="")
            print("read", file=sys.stderr)
        assert sys.stdout is broken
        broken.flush()  # as at the end of Python
    assert capsys.readouterr().err == "read\n"


@pytest.mark.parametrize("stream", NOWHERE)
def test_nothing_is_tried_again_once_it_failed(stream: type[TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    with stream() as broken:
        monkeypatch.setattr(sys, "stdout", broken)
        with lasting_output():
            sys.stdout.write("the plan\n")
            assert os.path.samestat(os.fstat(broken.fileno()), Path(os.devnull).stat())


def test_what_is_read_is_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with lasting_output():
        print("one")
        assert sys.stdout.encoding == before[0].encoding and sys.stdout.isatty() == before[0].isatty()
        print("two", file=sys.stderr)
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("one\n", "two\n")


def test_what_was_closed_from_the_beginning_is_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(KeyError), lasting_output():
        print("nobody reads it")
        assert not sys.stdout.isatty()
        raise KeyError
    assert sys.stdout is None


@pytest.mark.parametrize("wrong", ["2>&-", "2>&1 | true; exit ${PIPESTATUS[0]}"])
def test_the_exit_code_is_told_where_the_words_are_not(wrong: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m sbert_train fit --config nowhere.yaml {wrong}"
    assert subprocess.run(["bash", "-c", command], cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_a_run_that_nobody_listens_to_writes_its_model(tmp_path: Path, tiny_model: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(dump_config(config(tmp_path, tiny_model, train={"max_steps": 2})))
    command = [sys.executable, "-m", "sbert_train", "fit", "--config", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()
    assert (tmp_path / "run" / "report.json").is_file()


@pytest.mark.parametrize(
    ("encoding", "written"), [("ascii", r"a \u2026 \u732b \udcff"), ("utf-8", "a … 猫 \\udcff")]
)
def test_a_character_that_the_encoding_lacks_is_escaped(
    encoding: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    with io.TextIOWrapper(file, encoding=encoding) as narrow:
        with pytest.raises(UnicodeEncodeError):  # the premise
            narrow.write("… \udcff")
        monkeypatch.setattr(sys, "stdout", narrow)
        with lasting_output():
            assert sys.stdout.write("a … 猫 \udcff") == 7
        assert file.getvalue().decode(encoding) == written
