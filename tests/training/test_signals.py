"""A run that is told to stop ends where nothing is lost, and says how to go on."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import TrainerControl, TrainerState, TrainingArguments

from sbert_train.config import dump_config
from sbert_train.errors import Interrupted
from sbert_train.training import assembly, save_points
from sbert_train.training import fit as fit_module
from sbert_train.training.save_points import SavePoints
from sbert_train.training.signals import StopSignals
from sbert_train.training.trainer import SentenceTrainer
from tests.training.interruptions import EVERY_TWO, moved, trained, weights_of
from tests.training.runs import config

EACH_EPOCH: dict[str, Any] = {"num_train_epochs": 3, "learning_rate": 0.01}
NEVER: dict[str, Any] = {"num_train_epochs": 3, "save_strategy": "no", "eval_strategy": "no"}


@pytest.fixture(autouse=True)
def _terminal() -> Iterator[None]:
    """A run hears of its terminal, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@contextmanager
def in_step(number: int, do: Callable[[], object]) -> Iterator[None]:
    """Something happens while a step is computed."""
    inner = SentenceTrainer.training_step

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == number - 1:
            do()
        return inner(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SentenceTrainer, "training_step", training_step)
        yield


def told(*numbers: int) -> Callable[[], None]:
    """What tells this process to stop."""

    def tell() -> None:
        for number in numbers:
            os.kill(os.getpid(), number)

    return tell


@pytest.mark.parametrize(
    ("train", "step"),
    [
        (EACH_EPOCH, 4),
        pytest.param(EACH_EPOCH, 6, marks=pytest.mark.slow),
        (NEVER, 4),
        pytest.param({**EVERY_TWO, "eval_strategy": "no"}, 4, marks=pytest.mark.slow),
    ],
    ids=[
        "within an epoch",
        "at the end of an epoch",
        "where nothing is saved else",
        "where it is saved anyway",
    ],
)
def test_a_run_that_is_told_to_stop_is_saved_at_the_end_of_the_step(
    train: dict[str, Any], step: int, tmp_path: Path, tiny_model: Path
) -> None:
    settings = config(tmp_path, tiny_model, train=train)
    whole, _ = trained(settings)
    stopped = moved(settings, tmp_path / "stopped")
    with in_step(step, told(signal.SIGTERM)), pytest.raises(Interrupted) as caught:
        trained(stopped)
    assert caught.value.signal == 15
    saved = tmp_path / "stopped" / "checkpoints" / f"checkpoint-{step}"
    steps = json.loads(whole.folder.report.read_text())["training"]["steps"]
    assert str(caught.value) == (
        f"stopped by SIGTERM after step {step} of {steps}, which is saved in {saved}; give the same command again to "
        "go on"
    )
    assert saved.is_dir() and not (tmp_path / "stopped" / "model").exists()
    history = json.loads((saved / "trainer_state.json").read_text())["log_history"]
    ends_an_epoch = train is EACH_EPOCH and step == 6
    evaluated = any("eval_pairs_spearman_cosine" in entry for entry in history if entry["step"] == step)
    assert evaluated == ends_an_epoch, "its evaluation comes before the save"
    result, _ = trained(stopped)
    assert weights_of(result.folder.model) == weights_of(whole.folder.model)
    assert json.loads(result.folder.report.read_text())["training"]["resumed_from"] == [step]


def test_where_only_the_best_is_saved_a_stop_waits_for_a_step_that_can_be(
    tmp_path: Path, tiny_model: Path
) -> None:
    train = {**EACH_EPOCH, "save_strategy": "best", "eval_strategy": "steps", "eval_steps": 3}
    settings = config(tmp_path, tiny_model, train=train)
    whole, _ = trained(settings)
    stopped = moved(settings, tmp_path / "stopped")
    with (
        in_step(6, told(signal.SIGINT)),
        pytest.raises(Interrupted, match=r"stopped by Ctrl-C after step [67] of 18"),
    ):
        trained(stopped)
    result, _ = trained(stopped)
    assert weights_of(result.folder.model) == weights_of(whole.folder.model)


@pytest.mark.parametrize("strategy", ["no", "best"])
def test_a_run_that_is_told_to_stop_in_its_last_evaluation_is_saved(
    strategy: str, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = {"save_strategy": strategy, "eval_strategy": "epoch", "load_best_model_at_end": False}
    settings = config(tmp_path, tiny_model, train=train)
    inner = SentenceTrainer.run_tasks

    def run_tasks(self: Any) -> Any:
        if self.state.global_step == 6 and self.is_in_train:
            told(signal.SIGTERM)()
        return inner(self)

    with (
        monkeypatch.context() as patch,
        pytest.raises(Interrupted, match="after step 6 of 6, which is saved"),
    ):
        patch.setattr(SentenceTrainer, "run_tasks", run_tasks)
        trained(settings)
    assert (tmp_path / "run" / "checkpoints" / "checkpoint-6").is_dir()


def test_what_to_do_is_another_command_where_the_same_would_begin_anew(
    tmp_path: Path, tiny_model: Path
) -> None:
    settings = config(tmp_path, tiny_model, train=EACH_EPOCH)
    for options in ({"overwrite": True}, {"resume": "never"}):
        with (
            in_step(4, told(signal.SIGTERM)),
            pytest.raises(Interrupted, match="without --overwrite and --resume"),
        ):
            trained(settings, **options)


def test_a_second_signal_is_not_waited_for(
    tmp_path: Path, tiny_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = config(tmp_path, tiny_model, train=EACH_EPOCH)
    twice = told(signal.SIGINT, signal.SIGINT)
    with (
        in_step(4, twice),
        pytest.raises(Interrupted, match=r"^stopped by Ctrl-C; nothing was saved, ") as caught,
    ):
        trained(settings)
    assert caught.value.signal == 2
    assert (
        "Ctrl-C: the run stops at the end of this step; a second one stops it at once"
        in capfd.readouterr().err
    )
    assert not (tmp_path / "run" / "checkpoints" / "checkpoint-4").exists()


@pytest.mark.parametrize("where", ["load_parts", "write_report"])
def test_before_and_after_training_a_run_stops_at_once(
    where: str, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, tiny_model)
    inner = getattr(fit_module, where)

    def stopping(*args: Any, **kwargs: Any) -> Any:
        told(signal.SIGTERM)()
        return inner(*args, **kwargs)

    with (
        monkeypatch.context() as patch,
        pytest.raises(Interrupted, match=r"^stopped by SIGTERM; (nothing|give)"),
    ):
        patch.setattr(fit_module, where, stopping)
        trained(settings)
    assert (tmp_path / "run").exists() == (where == "write_report")
    result, lines = trained(settings)
    assert result.folder.report.exists()
    assert any(line.startswith("resume     from step 6") for line in lines) == (where == "write_report")


def test_signals_are_handled_as_before_when_the_run_is_over(tmp_path: Path, tiny_model: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with in_step(2, told(signal.SIGINT)), pytest.raises(Interrupted):
        trained(config(tmp_path, tiny_model))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_in_a_thread_signals_are_left_to_others() -> None:
    found: list[Any] = []

    def look() -> None:
        with StopSignals().watching():
            found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [before]


def test_a_terminal_that_hangs_up_twice_is_still_waited_for() -> None:
    signals, reached = StopSignals(), []
    with (
        pytest.raises(Interrupted, match="stopped by SIGHUP") as caught,
        signals.watching(),
        signals.deferred(),
    ):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGHUP)
            reached.append(signals.requested)
    assert reached == [signal.SIGHUP] * 2, "neither was raised before the end of the block"
    assert caught.value.signal == 1


def test_a_terminal_that_is_gone_cannot_be_told_and_is_still_waited_for() -> None:
    signals, reached, before = StopSignals(), False, os.dup(2)
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 2)
    try:
        with pytest.raises(BrokenPipeError):  # the premise
            os.write(2, b"anything")
        with pytest.raises(Interrupted, match="stopped by SIGHUP"), signals.watching(), signals.deferred():
            os.kill(os.getpid(), signal.SIGHUP)
            reached = True
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(writing)
    assert reached


def test_under_nohup_a_run_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals().watching():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_forked_worker_ends_by_sigterm_and_leaves_to_the_run_what_a_terminal_sends() -> None:
    reading, writing = os.pipe()
    with StopSignals().watching():
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGHUP)
            os.write(writing, b"still here")
            signal.pause()
        assert os.read(reading, 20) == b"still here"
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM


def test_a_long_epoch_is_saved_now_and_then(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step here, as no time at all may pass; and not where nothing is to be saved."""
    for folder, strategy, expected in (("a", "epoch", [1, 2, 3, 4, 5, 6]), ("b", "no", [])):
        (tmp_path / folder).mkdir()
        train = {"save_strategy": strategy, "eval_strategy": "no", "save_total_limit": 50}
        settings = config(tmp_path / folder, tiny_model, train=train)
        with monkeypatch.context() as patch:
            patch.setattr(assembly, "SavePoints", lambda signals: SavePoints(signals, 0.0))
            trained(settings)
        found = (tmp_path / folder / "run" / "checkpoints").glob("checkpoint-*")
        assert sorted(int(path.name.rpartition("-")[2]) for path in found) == expected


def test_the_time_to_the_next_save_begins_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(save_points, "time", SimpleNamespace(monotonic=lambda: now[0]))
    args = TrainingArguments(str(tmp_path), use_cpu=True)
    state, points = TrainerState(epoch=0.5, max_steps=9), SavePoints(seconds=10)
    points.on_train_begin(args, state, TrainerControl())
    saved = []
    for second in range(1, 31):
        now[0], control = second, TrainerControl()
        points.on_step_end(args, state, control)
        if control.should_save:
            saved.append(second)
            points.on_save(args, state, control)
    assert saved == [10, 20, 30]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "name"),
    [
        (signal.SIGTERM, 143, "SIGTERM"),
        (signal.SIGINT, 130, "Ctrl-C"),
        (signal.SIGHUP, 129, "SIGHUP (its terminal was closed)"),
    ],
)
def test_the_command_says_how_to_go_on_and_does(
    number: int, code: int, name: str, tmp_path: Path, tiny_model: Path
) -> None:
    train = {"num_train_epochs": 60, "save_strategy": "no", "eval_strategy": "no"}
    settings = config(tmp_path, tiny_model, train=train)
    file = tmp_path / "run.yaml"
    file.write_text(dump_config(settings))
    command = [sys.executable, "-m", "sbert_train", "fit", "--config", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        process.stdout.close()  # as by `| head`: what is printed is lost, the run is not
        for line in process.stderr:
            if line.startswith("step 5/"):
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait() == code
    last = rest.splitlines()[-1]
    assert "Traceback" not in rest
    assert last.startswith(f"sbert-train: stopped by {name} after step ")
    assert last.endswith("give the same command again to go on")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "resume     from step " in done.stdout
    whole, _ = trained(moved(settings, tmp_path / "whole"))
    assert weights_of(tmp_path / "run" / "model") == weights_of(whole.folder.model)
