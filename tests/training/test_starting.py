"""From which checkpoint a run goes on, and which runs may go on from it at all."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sbert_train.config import RunConfig, dump_config, load_config
from sbert_train.config.objectives import InBatchNegatives
from sbert_train.errors import CommandError, ConfigError, TrainingError
from sbert_train.training import checkpoints
from sbert_train.training.identity import CHANGEABLE, require_changeable
from sbert_train.training.trainer import SentenceTrainer
from tests.tiny import make_encoder
from tests.training.interruptions import killed_in_step, moved, stopping_early, trained, weights_of
from tests.training.objective_runs import block_for, trainer_of
from tests.training.runs import config, sentences, write_csv

EVERY_TWO: dict[str, Any] = {
    "num_train_epochs": 2,
    "save_strategy": "steps",
    "save_steps": 2,
    "eval_strategy": "no",
}
KEEP_ALL = {**EVERY_TWO, "save_total_limit": 20}


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def killed(tmp_path: Path, tiny_model: Path) -> RunConfig:
    """A run with checkpoints of the steps 2, 4 and 6."""
    settings = config(tmp_path, tiny_model, train=KEEP_ALL)
    with killed_in_step(8):
        trained(settings)
    assert sorted(path.name for path in checkpoints_of(settings).iterdir()) == [
        f"checkpoint-{i}" for i in (2, 4, 6)
    ]
    return settings


def checkpoints_of(settings: RunConfig) -> Path:
    return Path(settings.output_dir) / "checkpoints"


def first_new_step(settings: RunConfig, **options: Any) -> tuple[int, list[str]]:
    """The step with which a run goes on, and what it said."""
    result, lines = trained(settings, **options)
    resumed = json.loads(result.folder.report.read_text())["training"]["resumed_from"]
    return (resumed[-1] if resumed else 0) + 1, lines


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
    with pytest.raises(ConfigError, match="expected auto, never, or a folder that is or holds checkpoints"):
        trained(killed, resume=str(tmp_path / "empty" / path))


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "seed": ({"seed": 7}, "seed: 42 in checkpoint-6, 7 now"),
    "objective": (
        {"objective": {"name": "triplet"}},
        'objective.name: "in_batch_negatives" in checkpoint-6, "triplet"',
    ),
    "option": (
        {"objective": {"name": "in_batch_negatives", "scale": 30}},
        "objective.scale: null in checkpoint-6, 30.0 now",
    ),
    "batch": (
        {"train": {**KEEP_ALL, "per_device_train_batch_size": 4}},
        "train.per_device_train_batch_size: 8 in checkpoint-6, 4 now",
    ),
    "max_length": ({"model": {"max_length": 16}}, "model.max_length: null in checkpoint-6, 16 now"),
    "learning rate": (
        {"train": {**KEEP_ALL, "learning_rate": 0.5}},
        "train.learning_rate: 0.001 in checkpoint-6, 0.5 now",
    ),
    "a key that was not there": (
        {"train": {**KEEP_ALL, "adam_beta1": 0.8}},
        "train.adam_beta1: not there in checkpoint-6, 0.8 now",
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_another_configuration_is_refused_with_the_difference_named(
    kind: str, killed: RunConfig, tmp_path: Path, tiny_model: Path
) -> None:
    blocks, words = CHANGES[kind]
    blocks = {**blocks, "model": {"base": str(tiny_model), **blocks.get("model", {})}}
    before = sorted(Path(killed.output_dir).rglob("*"))
    with pytest.raises(ConfigError) as caught:
        trained(config(tmp_path, tiny_model, **{"train": KEEP_ALL, **blocks}))
    lines = str(caught.value).splitlines()
    assert any(line.startswith(words) for line in lines), lines
    assert lines[-1].startswith("checkpoint-6 is of another run: ")
    assert ("--allow-changes train.learning_rate" in lines[-1]) == (kind == "learning rate")
    assert sorted(Path(killed.output_dir).rglob("*")) == before


def test_other_data_is_refused_wherever_it_lies(killed: RunConfig, tmp_path: Path) -> None:
    source = Path(killed.data.train[0].source)
    aside = source.rename(tmp_path / "aside.csv")
    write_csv(source, ("anchor", "positive", "negative"), [row[:3] for row in sentences(48, seed=5)])
    with pytest.raises(
        ConfigError, match=r"data of train triplets0: [0-9a-f]{16} in checkpoint-6, [0-9a-f]{16} now"
    ):
        trained(killed)
    train = [{**killed.data.train[0].model_dump(), "source": str(aside)}]
    data = {**killed.data.model_dump(), "train": train}
    again = RunConfig.model_validate({**killed.model_dump(), "data": data})
    assert first_new_step(again)[0] == 7, "the same rows in another file"


def test_another_base_is_refused(killed: RunConfig, tmp_path: Path, tiny_model: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "base")
    again = killed.model_copy(
        update={"model": killed.model.model_copy(update={"base": str(tmp_path / "base")})}
    )
    weights = tmp_path / "base" / "model.safetensors"
    unchanged = weights.read_bytes()
    flip(weights)
    with pytest.raises(ConfigError, match=r"weights of model.base: [0-9a-f]{32} in checkpoint-6"):
        trained(again)
    weights.write_bytes(unchanged)
    assert first_new_step(again)[0] == 7, "the same weights in another folder"


def test_another_teacher_is_refused_and_the_same_may_be_moved(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("embedding_distillation", tmp_path, tiny_model)
    settings = config(tmp_path, tiny_model, **blocks, train=KEEP_ALL)
    with killed_in_step(3):
        trained(settings)
    aside = (tmp_path / "teacher").rename(tmp_path / "aside")
    make_encoder(seed=9).save(tmp_path / "teacher")
    with pytest.raises(ConfigError, match=r"weights of teachers and guides: [0-9a-f]{32} in checkpoint-2"):
        trained(settings)
    objective = {**blocks["objective"], "teacher": str(aside)}
    assert (
        first_new_step(config(tmp_path, tiny_model, **blocks | {"objective": objective}, train=KEEP_ALL))[0]
        == 3
    )


def test_a_rate_that_follows_evaluations_cannot_be_changed(tmp_path: Path, tiny_model: Path) -> None:
    train = {
        **KEEP_ALL,
        "eval_strategy": "steps",
        "eval_steps": 2,
        "lr_scheduler_type": "reduce_lr_on_plateau",
    }
    with killed_in_step(3):
        trained(config(tmp_path, tiny_model, train=train))
    changed = config(tmp_path, tiny_model, train={**train, "learning_rate": 1e-6})
    with pytest.raises(ConfigError, match='not with "reduce_lr_on_plateau", which sets it') as told:
        trained(changed, allow_changes=["train.learning_rate"])
    assert "--allow-changes" not in str(told.value)


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


def test_other_versions_are_refused_and_may_be_let_through(
    killed: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewrite(step: int) -> None:
        """As if the checkpoint had been written with another version of torch, on another machine."""
        folder = checkpoints_of(killed)
        checkpoints.begin_stage(folder, step)
        stage = checkpoints.stage_of(folder, step)
        for file in (folder / f"checkpoint-{step}").iterdir():
            if file.name != "manifest.json":
                shutil.copyfile(file, stage / file.name)
        identity = json.loads((stage / "run.json").read_text())
        identity["versions"]["torch"] = "2.10.0"
        identity["hardware"] = "cuda, 64 threads"
        (stage / "run.json").write_text(json.dumps(identity))
        checkpoints.seal(folder, step)

    rewrite(6)
    with pytest.raises(
        ConfigError, match=rf"versions.torch: 2.10.0 in checkpoint-6, {torch.__version__[:6]}"
    ):
        trained(killed)
    step, lines = first_new_step(killed, allow_changes=["versions.torch"])
    assert step == 7
    assert [line.split(":")[0] for line in lines if line.startswith("changed")] == [
        "changed    versions.torch",
        "changed    hardware",
    ]


def test_what_can_change_is_told(killed: RunConfig) -> None:
    with pytest.raises(CommandError, match=r"--allow-changes seed: expected one of train.num_train_epochs, "):
        trained(killed, allow_changes=["seed"])
    require_changeable([*CHANGEABLE, "engine.packing", "versions.torch"])
    with pytest.raises(CommandError):
        require_changeable(["train"])


def test_a_value_of_the_environment_is_compared_and_not_written_down(
    tmp_path: Path, tiny_model: Path
) -> None:
    file = tmp_path / "run.yaml"
    text = dump_config(config(tmp_path, tiny_model, train={**KEEP_ALL, "weight_decay": 0.0}))
    file.write_text(text.replace("weight_decay: 0.0", "weight_decay: ${DECAY}"))
    with killed_in_step(4):
        trained(load_config(file, environ={"DECAY": "0.0123"}))
    assert "0.0123" not in (tmp_path / "run/checkpoints/checkpoint-2/run.json").read_text()
    with pytest.raises(
        ConfigError, match=r'train.weight_decay: "\$\{DECAY\}" \([0-9a-f]{16}\) in checkpoint-2'
    ):
        trained(load_config(file, environ={"DECAY": "0.0124"}))
    assert first_new_step(load_config(file, environ={"DECAY": "0.0123"}))[0] == 3


def test_a_checkpoint_of_another_shape_is_not_half_loaded(killed: RunConfig, tmp_path: Path) -> None:
    learnt = InBatchNegatives(name="in_batch_negatives", learnable_scale=True)
    trainer = trainer_of(moved(killed, tmp_path / "x").model_copy(update={"objective": learnt}))
    before = {name: weights.clone() for name, weights in trainer.siamese.state_dict().items()}
    with pytest.raises(
        TrainingError, match=r"checkpoint-6 does not fit the model of this run: .* Missing key"
    ):
        trainer.train(resume_from_checkpoint=str(checkpoints_of(killed) / "checkpoint-6"))
    assert set(before) == set(trainer.siamese.state_dict())
