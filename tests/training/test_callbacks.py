"""What a person sees of a training: a bar that keeps to its line, or plain lines."""

import io
import json
import re
from pathlib import Path

import pytest
from transformers import TrainerControl, TrainerState, TrainingArguments

from sbert_train.training.callbacks import JsonLog, ProgressBar
from sbert_train.training.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STEPS = 142
METRIC = "eval_contrast_spearman_cosine"


def shown(
    stream: io.StringIO, *, columns: int | None = None, monkeypatch: pytest.MonkeyPatch | None = None
) -> str:
    """What is written of a run of two steps of 64 rows and half a second each, evaluated at its start and then."""
    progress = Progress()
    bar = ProgressBar(METRIC, progress, stream)
    if monkeypatch is not None:
        monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda _: (columns, 24))
        monkeypatch.setattr("sbert_train.training.callbacks.SECONDS", 0.0)
    args, control = TrainingArguments(), TrainerControl()
    state = TrainerState(max_steps=STEPS, is_world_process_zero=True)
    bar.on_train_begin(args, state, control)
    bar.on_log(args, state, control, logs={METRIC: 0.4032, "eval_contrast_pearson_cosine": 0.3})
    for step in (1, 2):
        state.global_step = step
        progress.rows += 64
        progress.step_seconds += 0.5
        bar.on_step_end(args, state, control)
        bar.on_log(args, state, control, logs={"loss": 0.53031, "learning_rate": 1.3e-5, "grad_norm": 2.0})
    progress.step_seconds += 0.0  # an evaluation takes none of it
    bar.on_log(args, state, control, logs={METRIC: 0.5690})
    state.global_step = 3
    progress.rows += 64
    progress.step_seconds += 0.5
    bar.on_step_end(args, state, control)
    bar.close()
    return stream.getvalue()


def test_a_log_gets_plain_lines_with_speed_and_what_is_left() -> None:
    assert shown(io.StringIO()).splitlines() == [
        "step 0/142  contrast_spearman_cosine 0.4032",
        "step 1/142  loss 0.5303  lr 1.3e-05  128 pairs/s  ETA 01:10",
        "step 2/142  loss 0.5303  lr 1.3e-05  128 pairs/s  ETA 01:10",
        "step 2/142  contrast_spearman_cosine 0.5690",
    ]


@pytest.mark.parametrize(
    ("columns", "score"), [(80, "eval 0.5690"), (120, "contrast_spearman_cosine 0.5690")]
)
def test_a_bar_keeps_to_its_line_and_has_everything(
    columns: int, score: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [
        one for one in re.split(r"[\r\n]", shown(Terminal(), columns=columns, monkeypatch=monkeypatch)) if one
    ]
    assert max(map(len, pictures)) <= columns
    parts = (" 3/142 ", "loss 0.5303", "lr 1.3e-05", "128 pairs/s", "ETA 01:09", score)
    assert all(part in pictures[-1] for part in parts), pictures[-1]
    assert "contrast_pearson" not in pictures[-1]


def test_a_run_that_goes_on_is_timed_from_where_it_does() -> None:
    stream, progress = io.StringIO(), Progress(rows=64_000, step_seconds=1.0)
    bar = ProgressBar(None, progress, stream)
    state = TrainerState(global_step=100, max_steps=110, is_world_process_zero=True)
    args, control = TrainingArguments(), TrainerControl()
    bar.on_train_begin(args, state, control)
    state.global_step, progress.rows, progress.step_seconds = 101, 64_020, 5.0
    bar.on_log(args, state, control, logs={"loss": 1.0, "learning_rate": 1.0})
    assert "5.0 pairs/s  ETA 00:36" in stream.getvalue()


def test_a_line_of_somebody_else_does_not_tear_the_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    bar = ProgressBar(None, Progress(), stream)
    state = TrainerState(max_steps=9, is_world_process_zero=True)
    bar.on_train_begin(TrainingArguments(), state, TrainerControl())
    assert stream.getvalue().rstrip(" ").endswith("0/9"), "it is there"
    with bar.put_aside():
        cleared = stream.getvalue()
        print("WARNING")
    assert cleared.endswith("\r") and capsys.readouterr().out == "WARNING\n"
    assert "0/9" in stream.getvalue()[len(cleared) :], "it is there again"
    bar.close()
    with bar.put_aside():
        pass


def test_a_warning_is_an_entry_of_the_log_with_its_step(tmp_path: Path) -> None:
    log = JsonLog(tmp_path / "log.jsonl")
    log.add(TrainerState(global_step=7, epoch=0.5, is_world_process_zero=True), {"warning": "constant"})
    log.add(TrainerState(global_step=8, is_world_process_zero=False), {"warning": "another process"})
    (line,) = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(line) == {"step": 7, "epoch": 0.5, "warning": "constant"}


def test_what_is_not_finite_is_null_and_trainers_own_summary_is_left_out(tmp_path: Path) -> None:
    log = JsonLog(tmp_path / "log.jsonl")
    args = TrainingArguments(output_dir=str(tmp_path))
    for entry in ({"loss": 1.0, "grad_norm": float("inf")}, {"train_runtime": 1.0, "train_loss": 2.0}):
        log.on_log(args, TrainerState(global_step=2), TrainerControl(), logs=entry)
    (line,) = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=pytest.fail)["grad_norm"] is None
