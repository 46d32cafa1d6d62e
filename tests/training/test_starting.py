"""From which checkpoint a run goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbert_train.config import RunConfig
from sbert_train.config.objectives import InBatchNegatives
from sbert_train.errors import ConfigError, TrainingError
from sbert_train.training.trainer import SentenceTrainer
from tests.training.interruptions import (
    checkpoints_of,
    first_new_step,
    flip,
    killed_in_step,
    moved,
    stopping_early,
    trained,
    weights_of,
)
from tests.training.objective_runs import trainer_of
from tests.training.runs import config


@pytest.mark.parametrize("how", ["auto", "the folder of the run", "its checkpoints"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning_and_replaced(how: str, killed: RunConfig) -> None:
    flip(checkpoints_of(killed) / "checkpoint-6" / "optimizer.pt")
    places = {"the folder of the run": killed.output_dir, "its checkpoints": str(checkpoints_of(killed))}
    step, lines = first_new_step(killed, resume=places.get(how, how))
    (warning,) = [line for line in lines if line.startswith("warning")]
    assert step == 5 and "checkpoint-6: the content of optimizer.pt has changed" in warning


def test_a_damaged_checkpoint_is_an_error_if_asked_for(killed: RunConfig) -> None:
    flip(checkpoints_of(killed) / "checkpoint-6" / "model.safetensors")
    with pytest.raises(
        ConfigError, match=r"checkpoint-6: the content of model.safetensors has changed; move it away"
    ):
        trained(killed, strict=True)
    shutil.rmtree(checkpoints_of(killed) / "checkpoint-6")
    assert first_new_step(killed, strict=True)[0] == 5


def test_where_no_checkpoint_is_whole_only_never_begins_anew(killed: RunConfig) -> None:
    for one in checkpoints_of(killed).iterdir():
        flip(one / "scheduler.pt")
    with pytest.raises(
        ConfigError, match=r"no checkpoint is whole \(.*checkpoint-6: .*checkpoint-2: .*--resume never"
    ):
        trained(killed)
    assert first_new_step(killed, resume="never")[0] == 1


def test_a_run_begins_anew_if_asked_to(killed: RunConfig) -> None:
    assert first_new_step(killed, resume="never")[0] == 1
    other = killed.model_copy(update={"seed": 7})
    with pytest.raises(ConfigError, match=r"holds a run with another configuration"):
        trained(other, resume="never")
    assert first_new_step(other, overwrite=True)[0] == 1


def test_a_run_goes_on_from_a_checkpoint_that_is_named(killed: RunConfig) -> None:
    chosen = checkpoints_of(killed) / "checkpoint-4"
    with pytest.raises(ConfigError, match=r"holds newer ones \(checkpoint-6\); move them away"):
        trained(killed, resume=str(chosen))
    with pytest.raises(ConfigError, match=r"--overwrite would remove it"):
        trained(killed, resume=str(chosen), overwrite=True)
    shutil.rmtree(checkpoints_of(killed) / "checkpoint-6")
    assert first_new_step(killed, resume=str(chosen))[0] == 5


@pytest.mark.parametrize("what", ["", "checkpoints", "checkpoints/checkpoint-6"])
def test_a_run_goes_on_from_another_folder_and_leaves_it_alone(
    what: str, killed: RunConfig, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in Path(killed.output_dir).rglob("*") if path.is_file()}
    elsewhere = moved(killed, tmp_path / "elsewhere")
    result, _ = trained(elsewhere, resume=str(Path(killed.output_dir) / what))
    report = json.loads(result.folder.report.read_text())["training"]
    assert report["resumed_from"] == [6] and report["steps"] == 12
    assert before == {
        path: path.read_bytes() for path in Path(killed.output_dir).rglob("*") if path.is_file()
    }
    whole, _ = trained(moved(killed, tmp_path / "whole"))
    assert weights_of(result.folder.model) == weights_of(whole.folder.model)
    with pytest.raises(ConfigError, match=r"holds checkpoints of a run of its own; .* --overwrite"):
        trained(elsewhere, resume=killed.output_dir)


def last_and_best(settings: RunConfig) -> tuple[int, int]:
    report = json.loads((Path(settings.output_dir) / "report.json").read_text())["training"]
    return report["steps"], report["best_step"]


def test_the_best_model_comes_along_from_another_folder(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, **stopping_early(tmp_path))
    whole, _ = trained(settings)
    last, best = last_and_best(settings)
    assert best == last - 4, "the best is older than the newest"
    with killed_in_step(last):
        trained(moved(settings, tmp_path / "killed"))
    result, _ = trained(moved(settings, tmp_path / "elsewhere"), resume=str(tmp_path / "killed"))
    assert weights_of(result.folder.model) == weights_of(whole.folder.model)


def test_a_checkpoint_whose_best_model_is_lost_is_not_whole(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, **stopping_early(tmp_path, save_total_limit=20))
    trained(settings)
    last, best = last_and_best(settings)
    flip(checkpoints_of(settings) / f"checkpoint-{best}" / "model.safetensors")
    step, lines = first_new_step(settings)
    assert step == best - 1
    warnings = [line for line in lines if line.startswith("warning")]
    assert (
        f"checkpoint-{last}: the best model, that of checkpoint-{best}, is not whole: the content"
        in warnings[0]
    )
    assert len(warnings) == 3


@pytest.mark.parametrize(
    ("do", "words"),
    [(lambda best: flip(best / "model.safetensors"), "the content of model.safetensors has changed"),
     (shutil.rmtree, "it is gone")],
    ids=["damaged", "gone"],
)  # fmt: skip
def test_a_best_model_that_is_lost_while_the_run_lasts_is_told(
    do: Callable[[Path], object],
    words: str,
    tmp_path: Path,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trainer would keep the last model in its place without a word."""
    settings = config(tmp_path, tiny_model, **stopping_early(tmp_path))
    inner: Any = SentenceTrainer._finalize_training

    def finalize(self: Any, *args: Any) -> Any:
        do(Path(self.state.best_model_checkpoint))
        return inner(self, *args)

    monkeypatch.setattr(SentenceTrainer, "_finalize_training", finalize)
    with pytest.raises(
        TrainingError, match=rf"the best model is that of step \d+, whose checkpoint is damaged: {words}"
    ):
        trained(settings)
    assert not (Path(settings.output_dir) / "model").exists()


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_a_path_without_checkpoints_is_refused(path: str, killed: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError) as caught:
        trained(killed, resume=str(tmp_path / "empty" / path))
    wrong = "there is no such folder" if path == "nowhere" else "holds none"
    assert f"expected auto, never, or a folder that is or holds checkpoints, but {wrong}; " in str(
        caught.value
    )
    assert str(caught.value).endswith(f"{checkpoints_of(killed) / 'checkpoint-6'}")


def test_a_training_cannot_be_made_shorter_than_it_is(killed: RunConfig) -> None:
    shorter = killed.model_copy(update={"train": {**killed.train, "max_steps": 5}})
    with pytest.raises(
        TrainingError, match="this run has 5 steps, and the checkpoint to go on from is that of step 6"
    ):
        trained(shorter, allow_changes=["train.max_steps"])


def test_a_model_without_checkpoints_is_not_replaced_by_another_run(
    killed: RunConfig, tmp_path: Path
) -> None:
    other = moved(killed.model_copy(update={"seed": 7}), tmp_path / "other")
    trained(other)
    shutil.rmtree(checkpoints_of(other))
    with pytest.raises(ConfigError, match="holds a run with another configuration"):
        trained(moved(killed, tmp_path / "other"), resume=killed.output_dir)
    assert (tmp_path / "other" / "model" / "model.safetensors").exists()


def test_a_checkpoint_that_changes_while_it_is_copied_is_refused(
    killed: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = shutil.copyfile

    def copyfile(source: Path, target: Path) -> Any:
        if source.name == "optimizer.pt":
            flip(source)
        return inner(source, target)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(ConfigError, match="checkpoint-6 has changed while it was copied"):
        trained(moved(killed, tmp_path / "elsewhere"), resume=killed.output_dir)
    assert not (tmp_path / "elsewhere" / "checkpoints").exists()


def test_a_checkpoint_of_another_shape_is_not_half_loaded(killed: RunConfig, tmp_path: Path) -> None:
    learnt = InBatchNegatives(name="in_batch_negatives", learnable_scale=True)
    trainer = trainer_of(moved(killed, tmp_path / "x").model_copy(update={"objective": learnt}))
    before = {name: weights.clone() for name, weights in trainer.siamese.state_dict().items()}
    with pytest.raises(
        TrainingError, match=r"checkpoint-6 does not fit the model of this run: .* Missing key"
    ):
        trainer.train(resume_from_checkpoint=str(checkpoints_of(killed) / "checkpoint-6"))
    assert set(before) == set(trainer.siamese.state_dict())
