"""What the environment holds is used and never told: not in what a run writes, not in what it says, not in an error."""

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from sbert_train.cli import main
from sbert_train.config import dump_config, load_config
from sbert_train.errors import ModelError
from tests.configs import SMALLEST, complaints, load, with_lines
from tests.tiny import make_encoder
from tests.training.runs import write_scored, write_triplets

SECRET = re.compile(r"[\w.-]*s3cret")


@pytest.fixture
def run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration in which the environment holds the value of every key that may take one, and a token besides."""
    places = {"BASE": tmp_path / "base-s3cret", "DATA": tmp_path / "data-s3cret", "OUT": "out-s3cret"}
    others = {
        "EVAL": "eval-s3cret",
        "STEPS": "2",
        "GUIDE": tmp_path / "guide-s3cret",
        "BEST": "eval_EVAL_pearson_dot",
        "COLUMN": "first-s3cret",
    }
    tokens = {"HF_TOKEN": "hf_s3cret", "WANDB_API_KEY": "key-s3cret"}
    for name, value in (places | others | tokens).items():
        monkeypatch.setenv(name, str(value))
    for name in ("base", "guide"):
        make_encoder().save(tmp_path / f"{name}-s3cret")
    data = tmp_path / "data-s3cret"
    data.mkdir()
    rows = write_triplets(data).rename(data / "rows.csv")
    rows.write_text(rows.read_text().replace("anchor,", "first-s3cret,", 1))
    write_scored(data).rename(data / "eval-s3cret.csv")
    run = {
        "output_dir": f"{tmp_path}/runs/${{OUT}}",
        "model": {"base": "${BASE}", "prompts": {"anchor": "the "}},
        "data": {
            "train": [{"source": "${DATA}/rows.csv", "columns": {"anchor": "${COLUMN}"}}],
            "eval": [{"source": "${DATA}/${EVAL}.csv", "task": "sts", "score_range": [0, 5]}],
        },
        "objective": {"name": "in_batch_negatives", "guide": "${GUIDE}", "guide_margin": 0.1},
        "train": {
            "per_device_train_batch_size": 8,
            "max_steps": "${STEPS}",
            "logging_steps": 1,
            "save_steps": 2,
            "save_strategy": "steps",
            "eval_strategy": "steps",
            "eval_steps": 2,
            "metric_for_best_model": "${BEST}",
        },
        "engine": {"precision": "fp32"},
    }
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(run))
    return file


def start(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["sbert-train", *map(str, arguments)])
    try:
        main()
    except SystemExit as stop:
        return stop.code
    return 0


def test_a_run_tells_nothing_of_it(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = load_config(run_file)
    assert str(config.model.base).endswith("base-s3cret")  # the premise: it is used
    assert start(monkeypatch, "fit", "--config", run_file) == 0
    said = capsys.readouterr()
    # The folder of the run bears its name for all who list the disk; the commands that come next have to name it.
    assert set(SECRET.findall(said.out + said.err)) == {"out-s3cret"}
    assert "${BASE}" in said.out

    run = tmp_path / "runs" / "out-s3cret"
    files = [file for file in run.rglob("*") if file.is_file() and "checkpoints" not in file.parts]
    names = {file.relative_to(run).as_posix() for file in files}
    assert {
        "config.yaml",
        "environment.json",
        "log.jsonl",
        "report.json",
        "report.html",
        "model/README.md",
    } <= names
    told = {file.name: SECRET.findall(file.read_bytes().decode(errors="replace")) for file in files}
    assert {name: secrets for name, secrets in told.items() if secrets} == {}
    assert "# ${OUT}" in (run / "model" / "README.md").read_text()
    assert json.loads((run / "report.json").read_text())["evaluation"]["tasks"][0]["task"] == "EVAL"
    assert load_config(run / "config.yaml") == config


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.train.0.source=${DATA}/none.csv", "no such file: ${DATA}/none.csv"),
        ("data.train.0.source=${DATA}", "${DATA} is a folder"),
        ("model.base=${BASE}/none", "'${BASE}/none': no such folder"),
        ("model.base=${DATA}", "${DATA} is not a model"),
        ("output_dir=${DATA}", "output_dir: ${DATA} holds files that are not those of a run"),
        ("data.train.0.columns={anchor: '${COLUMN}', positive: '${EVAL}'}", "there is no column '${EVAL}'"),
        ("objective.guide=${DATA}", "${DATA} is not a model"),
        ("seed=${EVAL}", 'found "${EVAL}"'),
        ("${EVAL}=1", "unknown key"),
        ("train.optim=${EVAL}", "train.optim"),
    ],
)
def test_an_error_tells_nothing_of_it(
    run_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    override: str,
    words: str,
) -> None:
    assert start(monkeypatch, "fit", "--config", run_file, override) == 2
    said = capsys.readouterr()
    assert words in said.err and not SECRET.search(said.err + said.out)


def test_help_and_an_evaluation_tell_nothing_of_it(
    run_file: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start(monkeypatch, "fit", "--help")
    assert (
        start(monkeypatch, "eval", tiny_model, "--config", run_file, "--json", run_file.parent / "f.json")
        == 0
    )
    (run_file.parent / "data-s3cret" / "eval-s3cret.csv").unlink()
    assert start(monkeypatch, "eval", tiny_model, "--config", run_file) == 2
    said = capsys.readouterr()
    assert "no such file: ${DATA}/${EVAL}.csv" in said.err
    assert not SECRET.search(said.err + said.out + (run_file.parent / "f.json").read_text())


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("${S}", "S"),
        ("${S}/pairs.csv", "pairs"),
        ("${S}/*.csv", "S"),
        ("org/${S}", "S"),
        ("x ${S}.csv", "x_S"),
    ],
)
def test_a_set_is_named_by_what_is_written(tmp_path: Path, source: str, name: str) -> None:
    text = with_lines(f"data: {{train: [{{source: '{source}'}}]}}")
    config = load(tmp_path, text, environ={"S": "s3cret"})
    assert "s3cret" in config.data.train[0].source
    assert config.data.train[0].name == name
    assert "s3cret" not in dump_config(config)
    assert load(tmp_path, dump_config(config), environ={"S": "s3cret"}) == config
    assert load(tmp_path, SMALLEST, f"data.train.0.source={source}", environ={"S": "s3cret"}) == config


@pytest.mark.parametrize(
    "override",
    [
        "model.prompts.anchor=${S}: ",
        "data.train.0.name=${S}",
        "data.eval=[{source: a.csv, task: sts, name: '${S}'}]",
        "train.run_name=${S}",
        "train.project=x-${S}",
    ],
)
def test_what_others_read_takes_none(tmp_path: Path, override: str) -> None:
    """A prompt is in the model, a name of a set in its card, a name of a run in a tracker."""
    [line] = complaints(tmp_path, SMALLEST, override, environ={"S": "s3cret"})
    assert "others read it" in line and "s3cret" not in line


def test_a_short_value_is_left_in_an_error(tmp_path: Path) -> None:
    """It would be found in any sentence."""
    config = load(tmp_path, SMALLEST, "seed=${N}", "model.base=${M}", environ={"N": "7", "M": "long-enough"})
    with pytest.raises(ModelError, match=r"^7 of \$\{M\} at 7$"), config.hiding_environment():
        raise ModelError("7 of long-enough at 7")
