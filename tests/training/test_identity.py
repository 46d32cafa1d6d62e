"""By what a run is known again, so that no other one goes on from its checkpoints."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from sbert_train.config import RunConfig, dump_config, load_config
from sbert_train.data.sources import load_set
from sbert_train.errors import CommandError, ConfigError
from sbert_train.model.head import HeadSpec
from sbert_train.training.identity import CHANGEABLE, digest_of_rows, require_changeable
from tests.tiny import make_encoder, trained_head
from tests.training.interruptions import (
    KEEP_ALL,
    first_new_step,
    flip,
    killed_in_step,
    moved,
    rewrite,
    trained,
)
from tests.training.objective_runs import block_for
from tests.training.runs import config, sentences, write_csv, write_triplets


def test_rows_of_the_same_content_have_the_same_digest(tmp_path: Path) -> None:
    table = load_set("a", str(write_triplets(tmp_path)), cache_dir=tmp_path / "c").rows
    reordered = table.select(range(len(table)))
    assert digest_of_rows(table) == digest_of_rows(reordered)
    other_order = table.select(range(len(table) - 1, -1, -1))
    assert digest_of_rows(table) != digest_of_rows(other_order)
    assert digest_of_rows(table) != digest_of_rows(table.rename_column("negative", "negatives"))
    assert digest_of_rows(table) == digest_of_rows(table.select_columns(table.column_names[::-1]))
    assert digest_of_rows(table.select(range(10, 30))) == digest_of_rows(
        table.select(range(30)).select(range(10, 30))
    )


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


def test_a_set_that_takes_its_name_from_a_file_of_another_name_is_told_how_to_keep_it(
    killed: RunConfig, tmp_path: Path
) -> None:
    aside = Path(killed.data.train[0].source).rename(tmp_path / "aside.csv")
    file = tmp_path / "run.yaml"
    file.write_text(dump_config(killed))
    overrides = [f"data.train.0.source={aside}", "data.train.0.name=aside"]
    with pytest.raises(ConfigError) as caught:
        trained(load_config(file, overrides))
    (told,) = [line for line in str(caught.value).splitlines() if line.startswith("data.train.0.name: ")]
    (advice,) = shlex.split(told.rpartition(" with ")[2])
    assert advice == 'data.train.0.name="triplets0"'
    assert first_new_step(load_config(file, [*overrides, advice]))[0] == 7


def test_another_base_is_refused(killed: RunConfig, tmp_path: Path, tiny_model: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "base")
    again = killed.model_copy(
        update={"model": killed.model.model_copy(update={"base": str(tmp_path / "base")})}
    )
    weights = tmp_path / "base" / "model.safetensors"
    unchanged = weights.read_bytes()
    flip(weights)
    with pytest.raises(
        ConfigError, match=r"weights or tokenizer of model.base: [0-9a-f]{32} in checkpoint-6"
    ):
        trained(again)
    weights.write_bytes(unchanged)
    tokenizer = tmp_path / "base" / "tokenizer.json"
    whole = tokenizer.read_text()
    tokenizer.write_text(json.dumps({**json.loads(whole), "normalizer": {"type": "StripAccents"}}))
    with pytest.raises(
        ConfigError, match=r"weights or tokenizer of model.base: [0-9a-f]{32} in checkpoint-6"
    ):
        trained(again)
    tokenizer.write_text(whole)
    assert first_new_step(again)[0] == 7, "the same weights in another folder"


def test_another_head_of_the_base_is_refused(tmp_path: Path) -> None:
    make_encoder(head=trained_head(HeadSpec(dim=6), 32)).save(tmp_path / "base")
    settings = config(tmp_path, tmp_path / "base", train=KEEP_ALL)
    with killed_in_step(3):
        trained(settings)
    flip(tmp_path / "base" / "2_Dense" / "model.safetensors")
    with pytest.raises(
        ConfigError, match=r"weights or tokenizer of model.base: [0-9a-f]{32} in checkpoint-2"
    ):
        trained(settings)


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


def test_other_versions_are_refused_and_may_be_let_through(killed: RunConfig, tmp_path: Path) -> None:
    def change(stage: Path) -> None:
        """As if the checkpoint had been written with another version of torch, on another machine."""
        identity = json.loads((stage / "run.json").read_text())
        identity["versions"]["torch"] = "2.10.0"
        identity["hardware"] = "cuda, 64 threads"
        (stage / "run.json").write_text(json.dumps(identity))

    rewrite(killed, 6, change)
    with pytest.raises(
        ConfigError, match=rf"versions.torch: 2.10.0 in checkpoint-6, {torch.__version__[:6]}"
    ):
        trained(killed)
    with pytest.raises(ConfigError, match=r"checkpoint-6 is of another run: .*, begin anew without --resume"):
        trained(moved(killed, tmp_path / "elsewhere"), resume=killed.output_dir)
    step, lines = first_new_step(killed, allow_changes=["versions.torch"])
    assert step == 7
    assert [line.split(":")[0] for line in lines if line.startswith("changed")] == [
        "changed    versions.torch",
        "changed    hardware",
    ]


def test_another_number_of_processes_is_refused(killed: RunConfig) -> None:
    def change(stage: Path) -> None:
        identity = json.loads((stage / "run.json").read_text())
        (stage / "run.json").write_text(json.dumps({**identity, "processes": 2}))

    rewrite(killed, 6, change)
    with pytest.raises(ConfigError, match="processes: 2 in checkpoint-6, 1 now") as caught:
        trained(killed)
    assert "--allow-changes" not in str(caught.value)


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
