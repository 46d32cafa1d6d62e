"""A check tells what a run would tell before its first step, and leaves nothing behind."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import set_seed

from sbert_train.config import RunConfig, load_config
from sbert_train.errors import ConfigError, TrainingError
from sbert_train.training.arguments import training_arguments
from sbert_train.training.check import Check, check
from sbert_train.training.fit import fit
from sbert_train.training.measure import Seen, largest_batch, longer_on_average
from sbert_train.training.memory import MemoryMeter
from sbert_train.training.parts import load_parts
from sbert_train.training.plan import steps_of
from sbert_train.training.trainer import SentenceTrainer
from tests.training.runs import config, sentences, write_csv, write_triplets


def checked(settings: RunConfig, **options: Any) -> tuple[Check, list[str]]:
    lines: list[str] = []
    return check(settings, say=lines.append, **options), lines


def test_it_says_what_a_run_says_first_and_writes_nothing(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train={"max_steps": 1})
    found, lines = checked(settings)
    assert not Path(settings.output_dir).exists()
    assert lines == list(found.plan.lines) and len(lines) > 20
    said: list[str] = []
    fit(settings, say=said.append)
    assert said[: len(lines)] == lines


@pytest.mark.parametrize(
    "train",
    [
        {},
        {"num_train_epochs": 2.5},
        {"num_train_epochs": 1, "gradient_accumulation_steps": 4},
        {"per_device_train_batch_size": 7, "gradient_accumulation_steps": 3},
        {"max_steps": 11},
        {"per_device_train_batch_size": 48, "gradient_accumulation_steps": 4},
    ],
)
def test_the_steps_are_those_that_trainer_counts(
    tmp_path: Path, tiny_model: Path, train: dict[str, Any]
) -> None:
    settings = config(tmp_path, tiny_model, train=train)
    args = training_arguments(settings)
    parts = load_parts(settings, args)
    trainer = SentenceTrainer(
        parts.model, args, rows=parts.data.rows, batches=parts.data.batches, tasks=parts.tasks
    )
    *_, expected = trainer.set_initial_training_values(args, trainer.get_train_dataloader())
    assert steps_of(args, len(parts.data.batches))[0] == expected


def test_what_is_known_stands_in_its_json(tmp_path: Path, tiny_model: Path) -> None:
    plain = json.loads(json.dumps(checked(config(tmp_path, tiny_model))[0].to_json()))
    assert set(plain) == {
        "sbert_train", "base", "plan", "data", "negatives", "batches_per_epoch", "steps", "epochs", "measured",
        "warnings",
    }  # fmt: skip
    (train,), (dev,) = plain["data"]["train"], plain["data"]["eval"]
    assert train["account"]["kept"] == 48 and train["key"] == "data.train.0"
    assert train["account"]["columns"] == {role: [role] for role in ("anchor", "positive", "negative")}
    assert dev["overlaps"][0]["train"] == "triplets0" and dev["scores"]["guess"] == [0, 5]
    assert plain["negatives"][0]["in_batch"] == 7 and plain["negatives"][0]["hard"] == 8
    assert "each anchor sees 7 in-batch + 8 hard negatives" in plain["negatives"][0]["text"]
    assert (plain["batches_per_epoch"], plain["steps"], plain["epochs"]) == (6, 6, 1.0)


PAGE = Path(__file__).parents[2] / "docs" / "check.md"
ROLES = {"anchor", "positive", "negative", "sentence1", "sentence2", "score"}


def keys_of(value: Any) -> set[str]:
    """All keys of nested plain values, but for roles."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    return set(value) - ROLES | set().union(*map(keys_of, value.values()))


def test_the_page_has_every_key_of_the_json(tmp_path: Path, tiny_model: Path) -> None:
    found = checked(config(tmp_path, tiny_model), measuring=True)[0].to_json()
    found["data"]["train"][0]["labels"] = [{"label": 0, "name": None, "rows": 1}]
    found["warnings"] = [{"key": "", "message": ""}]
    words = set(re.findall(r"\w+", PAGE.read_text(encoding="utf-8").partition("## JSON")[2]))
    assert len(keys_of(found)) > 60 and keys_of(found) - words == set()


def test_columns_under_other_names_are_told_with_the_roles_that_they_play(
    tmp_path: Path, tiny_model: Path
) -> None:
    file = write_csv(
        tmp_path / "qa.csv", ("q", "answer", "n1", "n2"), [(*row[:3], row[2]) for row in sentences(16)]
    )
    columns = {"anchor": "q", "positive": "answer", "negative": ["n1", "n2"]}
    settings = config(tmp_path, tiny_model, data={"train": [{"source": str(file), "columns": columns}]})
    _, lines = checked(settings)
    assert "  columns  anchor = 'q', positive = 'answer', negative = 'n1' + 'n2'" in lines


def test_a_row_cannot_steer_the_terminal(tmp_path: Path, tiny_model: Path) -> None:
    rows = [(one, two) for one, two, *_ in sentences(16)]
    rows[0] = ("the\x1b[2J cat\nsat", rows[0][1])
    file = write_csv(tmp_path / "pairs.csv", ("anchor", "positive"), rows)
    _, lines = checked(config(tmp_path, tiny_model, data={"train": [{"source": str(file)}]}))
    shown = next(line for line in lines if line.startswith("  row      1:"))
    assert "'the\\x1b[2J cat sat'" in shown and "\x1b" not in "".join(lines)


def test_what_stands_in_the_environment_is_not_told(
    tmp_path: Path, tiny_model: Path, monkeypatch: Any
) -> None:
    file = write_csv(tmp_path / "pairs.csv", ("hidden-name", "positive"), [row[:2] for row in sentences(16)])
    monkeypatch.setenv("COLUMN", "hidden-name")
    yaml = tmp_path / "run.yaml"
    yaml.write_text(
        f"output_dir: run\nmodel: {{base: {tiny_model}}}\n"
        f"data: {{train: [{{source: {file}, columns: {{anchor: '${{COLUMN}}'}}}}]}}\n"
        "objective: {name: in_batch_negatives}\ntrain: {per_device_train_batch_size: 4}\n"
    )
    settings = load_config(yaml)
    _, lines = checked(settings)
    assert "  columns  anchor = '${COLUMN}', positive" in lines
    assert "hidden-name" not in "\n".join(lines)
    said: list[str] = []
    fit(RunConfig.model_copy(settings, update={"output_dir": str(tmp_path / "run")}), say=said.append)
    assert "hidden-name" not in "\n".join(said)


def test_neither_lines_nor_json_tell_what_the_environment_holds_whatever_its_characters(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = 'sécret"folder'
    monkeypatch.setenv("FOLDER", str(tmp_path / secret))
    monkeypatch.setenv("SPLIT", "train")
    yaml = tmp_path / "run.yaml"
    yaml.write_text(
        f"output_dir: '${{FOLDER}}/run'\nmodel: {{base: {tiny_model}}}\n"
        f"data: {{train: [{{source: {write_triplets(tmp_path)}, split: '${{SPLIT}}'}}]}}\n"
        "objective: {name: in_batch_negatives}\ntrain: {per_device_train_batch_size: 8, max_steps: 2}\n"
    )
    fit(load_config(yaml), say=lambda line: None)
    settings = load_config(yaml)
    found, lines = checked(settings)
    assert any(line.startswith("resume ") for line in lines), "the premise: the folder is told"
    other, more = checked(load_config(yaml, ["train.max_steps=1"]))
    assert any(one.key == "output_dir" for one in other.warnings), "the premise"
    for one, told in ((found, lines), (other, more)):
        plain = settings.hidden(one.to_json())
        assert "sécret" not in json.dumps(plain, ensure_ascii=False) and "sécret" not in "\n".join(told)
        assert set(plain["data"]) == {"train", "eval"}, "keys stay"
    report = json.loads((tmp_path / secret / "run" / "report.json").read_text())
    assert [one["use"] for one in report["data"]] == ["training"], "what the page promises stays"


def test_a_folder_that_cannot_be_written_to_is_a_warning(tmp_path: Path, tiny_model: Path) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("/proc takes files from nobody, and is not here")
    settings = config(tmp_path, tiny_model, output_dir="/proc/run")
    (warning,) = [one for one in checked(settings)[0].warnings if one.key == "output_dir"]
    assert warning.message.startswith("/proc/run cannot be written to: ")


def test_a_folder_that_a_run_would_refuse_is_a_warning(tmp_path: Path, tiny_model: Path) -> None:
    fit(
        config(tmp_path, tiny_model, train={"max_steps": 2, "save_strategy": "no", "eval_strategy": "no"}),
        say=lambda line: None,
    )
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    found, lines = checked(config(tmp_path, tiny_model, train={"max_steps": 3}))
    (warning,) = [one for one in found.warnings if one.key == "output_dir"]
    assert "holds a run with another configuration" in warning.message
    assert f"WARNING    {warning}" in lines
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before


def test_a_run_that_would_go_on_is_told(killed: RunConfig) -> None:
    found, lines = checked(killed)
    assert any(line.startswith("resume     from step 6") for line in lines)
    assert not [one for one in found.warnings if one.key == "output_dir"]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"metric_for_best_model": "eval_pairs_recall"}, "no eval set gives pairs_recall"),
        ({"optim": "adafactor", "optim_args": "nonsense=1"}, "train.optim"),
    ],
)
def test_what_a_run_would_stumble_on_later_is_an_error(
    tmp_path: Path, tiny_model: Path, train: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        checked(config(tmp_path, tiny_model, train=train))


@pytest.mark.parametrize(
    "blocks",
    [
        {},
        {"train": {"gradient_accumulation_steps": 2}},
        {"model": {"freeze": "backbone", "head": {"dim": 8}}},
        {"engine": {"gradient_cache": 64}},
    ],
)
def test_two_steps_are_measured_and_nothing_of_them_is_kept(
    tmp_path: Path, tiny_model: Path, blocks: dict[str, Any]
) -> None:
    if "model" in blocks:
        blocks = {**blocks, "model": {"base": str(tiny_model), **blocks["model"]}}
    settings = config(tmp_path, tiny_model, **blocks)
    found, lines = checked(settings, measuring=True)
    one = found.measured
    assert one is not None and lines[-1].startswith("measured   ") and not Path(settings.output_dir).exists()
    assert one.steps == 2 and one.batch_size == 8
    assert one.seconds == pytest.approx(one.seconds_per_step * found.plan.steps)
    accumulated = settings.train.get("gradient_accumulation_steps", 1)
    assert one.pairs_per_second * one.seconds_per_step == pytest.approx(8 * accumulated)
    assert one.memory_bytes is None or one.peak_memory_bytes < one.memory_bytes
    assert one.largest_batch_size is None or one.largest_batch_size in (1, 2, 4, 8, 16, 32)
    assert json.loads(json.dumps(found.to_json()))["measured"]["steps"] == 2


def test_a_run_whose_schedule_needs_evaluations_can_be_measured(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train={"lr_scheduler_type": "reduce_lr_on_plateau"})
    one = checked(settings, measuring=True)[0].measured
    assert one is not None and one.seconds > 0


def test_time_is_scaled_to_the_length_of_an_average_row(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model)
    parts = load_parts(settings, training_arguments(settings))
    meter = MemoryMeter(cuda=False)
    average = parts.data.rows.tokens_per_row
    assert longer_on_average(parts, Seen(meter, rows=10, tokens=round(5 * average))) == pytest.approx(
        2, rel=0.1
    )
    assert longer_on_average(parts, Seen(meter, rows=10, tokens=0)) == 1.0


def test_a_batch_that_cannot_be_halved_is_measured_alone(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train={"per_device_train_batch_size": 3})
    one = checked(settings, measuring=True)[0].measured
    assert one is not None and one.largest_batch_size is None and one.seconds > 0


def test_too_little_memory_is_told_as_in_a_run(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*args: Any, **kwargs: Any) -> Any:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(SentenceTrainer, "compute_loss", no_memory)
    set_seed(0)
    with pytest.raises(TrainingError, match="out of memory in step 1"):
        checked(config(tmp_path, tiny_model), measuring=True)


@pytest.mark.parametrize(
    ("peaks", "limit", "most", "expected"),
    [
        ((1_000, 2_000), 10_000, 10**6, 256),  # each 64 rows take 2,000: 9,000 hold 64 + 224
        ((1_000, 2_000), 8_000, 10**6, 128),
        ((1_000, 2_000), 2_300, 10**6, 64),
        ((1_000, 2_000), 2_000, 10**6, 32),  # what was measured is more than should be used
        ((1_900, 2_000), 10_000, 10**6, 1_024),  # 16 times, as two points say no more
        ((2_000, 2_000), 10_000, 10**6, None),
        ((3_000, 2_000), 10_000, 10**6, None),
        ((1_000, 2_000), 10_000, 200, 128),
    ],
)
def test_the_largest_batch_is_that_of_a_line_through_two_peaks(
    peaks: tuple[int, int], limit: int, most: int, expected: int | None
) -> None:
    assert largest_batch(64, *peaks, limit, most=most) == expected
