"""Weights are read as safetensors and never unpickled, whatever a folder holds, names or calls so."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import torch

from sbert_train.objectives.softmax import CLASSIFIER, SoftmaxClassifier, save_classifier
from tests.security.attacks import Marker, edit
from tests.security.conftest import Refusal, Roads, load
from tests.training.runs import write_csv

Attack = Callable[[Path, Marker], Path]


def in_place_of_the_weights(model: Path, marker: Marker) -> Path:
    (model / "model.safetensors").unlink()
    return pickled(model / "pytorch_model.bin", marker)


def called_safetensors(model: Path, marker: Marker) -> Path:
    return pickled(model / "model.safetensors", marker)


def in_place_of_a_dense_layer(model: Path, marker: Marker) -> Path:
    (model / "2_Dense" / "model.safetensors").unlink()
    return pickled(model / "2_Dense" / "pytorch_model.bin", marker)


def dense_layer_called_safetensors(model: Path, marker: Marker) -> Path:
    return pickled(model / "2_Dense" / "model.safetensors", marker)


def named_by_an_index(model: Path, marker: Marker) -> Path:
    (model / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "part.bin"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    return pickled(model / "part.bin", marker)


def named_by_the_configuration(model: Path, marker: Marker) -> Path:
    edit(model / "config.json", transformers_weights="part.bin")
    return pickled(model / "part.bin", marker)


def adapter(model: Path, marker: Marker) -> Path:
    edit(model / "adapter_config.json", peft_type="LORA", base_model_name_or_path=str(model))
    return pickled(model / "adapter_model.bin", marker)


def pickled(file: Path, marker: Marker) -> Path:
    file.write_bytes(marker.saved_by_torch())
    return file


def unpickle(file: Path) -> object:
    with file.open("rb") as opened:  # of a path torch would look at the name
        return torch.load(opened, weights_only=False)


ATTACKS: Mapping[Attack, str] = {
    in_place_of_the_weights: "expected model.safetensors, found pytorch_model.bin",
    called_safetensors: "transformers cannot load it",
    in_place_of_a_dense_layer: "expected model.safetensors, found pytorch_model.bin",
    dense_layer_called_safetensors: "is not a safetensors file",
    named_by_an_index: "expected safetensors files beside it",
    named_by_the_configuration: "transformers_weights: expected no such key",
    adapter: "holds an adapter beside its model",
}


@pytest.mark.parametrize("road", ["eval", "export", "base", "teacher", "guide"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_pickled_weights_are_refused_by_every_command(
    model: Path, marker: Marker, roads: Roads, refused: Refusal, attack: Attack, road: str
) -> None:
    file = attack(model, marker)
    marker.require_works(lambda: unpickle(file))
    assert ATTACKS[attack] in refused(*roads[road](model))
    assert not (model.parent / "run").exists() and not (model.parent / "exported").exists()


def test_pickles_that_lie_beside_the_weights_are_left_alone(model: Path, marker: Marker) -> None:
    names = ("pytorch_model.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin")
    for name in (*names, "2_Dense/pytorch_model.bin", "1_Pooling/pytorch_model.bin", "tokenizer.pkl"):
        file = pickled(model / name, marker)
        marker.require_works(partial(unpickle, file))
    assert load(model).encode(["the cat"]).shape == (1, 8)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_pickled_classifier_is_refused_by_training_and_evaluation(
    model: Path, marker: Marker, roads: Roads, refused: Refusal, tmp_path: Path, name: str
) -> None:
    folder = model / CLASSIFIER
    save_classifier(SoftmaxClassifier(dimension=8, classes=2, concat=["u", "v"]), folder)
    (folder / "model.safetensors").unlink()
    file = pickled(folder / name, marker)
    marker.require_works(lambda: unpickle(file))

    rows = [("the cat", "a cat", 0), ("the dog", "a fish", 1)] * 8
    data = write_csv(tmp_path / "nli.csv", ("sentence1", "sentence2", "label"), rows)
    told = refused("eval", model, "--data", data, "--task", "nli")
    assert str(folder / "model.safetensors") in told
    told = refused(
        *roads["base"](model),
        "objective={name: softmax, concat: [u, v]}",
        f"data.train=[{{source: {data}}}]",
        "data.eval=[]",
    )
    assert str(folder / "model.safetensors") in told
