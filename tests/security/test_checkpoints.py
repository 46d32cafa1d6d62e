"""A checkpoint from elsewhere runs nothing: its manifest is no signature, so its files are not trusted either."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from sbert_train.config import RunConfig
from sbert_train.errors import SbertTrainError
from tests.security.attacks import Marker
from tests.training.interruptions import EVERY_TWO, killed_in_step, rewrite, trained
from tests.training.runs import config


@pytest.fixture
def killed(tmp_path: Path, tiny_model: Path) -> RunConfig:
    """A run with a checkpoint of step 2."""
    settings = config(tmp_path, tiny_model, train={**EVERY_TWO, "eval_strategy": "no"})
    with killed_in_step(3):
        trained(settings)
    return settings


def test_the_premise_a_checkpoint_that_is_rewritten_is_taken(killed: RunConfig) -> None:
    rewrite(killed, 2, lambda stage: None)
    assert any(line.startswith("resume     from step 2") for line in trained(killed)[1])


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "model.safetensors"])
def test_a_pickle_in_a_checkpoint_is_refused_and_not_run(
    name: str, killed: RunConfig, marker: Marker
) -> None:
    def put(stage: Path) -> None:
        (stage / name).write_bytes(marker.saved_by_torch())

    def open_carelessly() -> None:
        with (Path(killed.output_dir) / "checkpoints" / "checkpoint-2" / name).open("rb") as opened:
            torch.load(opened, weights_only=False)

    rewrite(killed, 2, put)
    marker.require_works(open_carelessly)
    with pytest.raises(
        SbertTrainError, match=r"checkpoint-2 was not written by a run, and nothing of it is used: "
    ) as told:
        trained(killed)
    assert "\n" not in str(told.value) and not marker.left


@pytest.mark.parametrize(
    "name", ["training_args.bin", "pytorch_model.bin", "adapter_model.bin", "optimizer.bin"]
)
def test_a_file_that_no_run_writes_is_not_looked_at(name: str, killed: RunConfig, marker: Marker) -> None:
    """Trainer would read some of them, each with another name for the weights."""
    rewrite(killed, 2, lambda stage: (stage / name).write_bytes(marker.saved_by_torch()))
    trained(killed)
    assert not marker.left


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("progress.json", '{"seconds": 1, "more": 2}'),
        ("progress.json", "[]"),
        ("trainer_state.json", '{"global_step": "many"}'),
        ("trainer_state.json", '{"global_step": 1}'),
        ("trainer_state.json", "[]"),
        ("run.json", "[]"),
        ("run.json", "no JSON"),
        ("run.json", '{"config": 3}'),
    ],
)
def test_what_is_no_state_of_a_run_is_one_line(name: str, content: str, killed: RunConfig) -> None:
    rewrite(killed, 2, lambda stage: (stage / name).write_text(content))
    with pytest.raises(SbertTrainError, match="checkpoint-2") as told:
        trained(killed)
    assert "was not written by a run" in str(told.value) and "\n" not in str(told.value)


def test_a_checkpoint_holds_no_pickled_arguments_and_no_path(killed: RunConfig) -> None:
    folder = Path(killed.output_dir) / "checkpoints" / "checkpoint-2"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("manifest.json", "model.safetensors", "optimizer.pt", "progress.json", "rng_state.pth", "run.json"),
        *("scheduler.pt", "trainer_state.json"),
    ]
    for path in folder.iterdir():
        assert str(killed.output_dir).encode() not in path.read_bytes(), path.name
    state: dict[str, Any] = json.loads((folder / "trainer_state.json").read_text())
    assert state["best_model_checkpoint"] is None
