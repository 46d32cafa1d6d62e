"""A marker that no test may leave, models to spoil, and the commands that may open them."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import datasets
import pytest
import yaml

from sbert_train.cli import main
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from tests.hub import hub
from tests.security.attacks import Marker
from tests.tiny import make_encoder, trained_head
from tests.training.runs import config, write_scored

__all__ = ["hub"]

Refusal = Callable[..., str]
Roads = dict[str, Callable[[Path], tuple[str, ...]]]


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Marker]:
    """Where payloads leave their trace; at the end of a test there must be none."""
    left = Marker(tmp_path / "the-payload-ran")
    yield left
    assert not left.left, "the payload ran"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with a dense layer, to be spoiled."""
    folder = tmp_path / "model"
    make_encoder(head=trained_head(HeadSpec(dim=8), 32)).save(folder)
    return folder


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refusal:
    """Runs a command that must end with exit code 2 and one line, which it returns, and must ask nothing."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["sbert-train", *map(str, arguments)])
        monkeypatch.setattr("builtins.input", _must_not_ask)
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr().err
        assert stop.value.code == 2, told
        assert told.startswith("sbert-train: ") and told.count("\n") == 1 and told.endswith("\n"), told
        return told

    return run


def _must_not_ask(*_: object) -> str:
    raise AssertionError("the user was asked something")


@pytest.fixture
def roads(tmp_path: Path, tiny_model: Path) -> Roads:
    """Name -> the command by which a stranger's model comes in."""

    def fit(**blocks: object) -> tuple[str, ...]:
        file = tmp_path / "run.yaml"
        base = tiny_model if "model" not in blocks else tmp_path
        file.write_text(yaml.safe_dump(config(tmp_path, base, **blocks).model_dump(mode="json")))
        return ("fit", "--config", str(file))

    taught = {"name": "embedding_distillation"}
    guided = {"name": "in_batch_negatives", "guide_margin": 0.1}
    return {
        "eval": lambda model: ("eval", str(model), "--data", str(write_scored(tmp_path))),
        "export": lambda model: ("export", str(model), "--output", str(tmp_path / "exported")),
        "base": lambda model: fit(model={"base": str(model)}),
        "teacher": lambda model: fit(objective={**taught, "teacher": str(model)}),
        "guide": lambda model: fit(objective={**guided, "guide": str(model)}),
    }


def load(model: Path | str, **options: bool) -> SentenceEncoder:
    """The Python API."""
    return SentenceEncoder.load(model, device="cpu", **options)  # type: ignore[arg-type]
