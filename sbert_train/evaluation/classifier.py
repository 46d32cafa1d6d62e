"""The classifier that training with objective softmax leaves beside a model.

Shapes: N pairs, D dimensions, C classes, P parts that are laid end to end.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from sbert_train.errors import ModelError
from sbert_train.evaluation.encoding import Classify
from sbert_train.evaluation.metrics import Array

FOLDER = "classifier"
"""Of a model's folder: config.json {dimension: D, classes: C, concat: P names}, and model.safetensors with a weight
(C, P * D) and a bias (C,)."""

PARTS: Mapping[str, Callable[[Array, Array], Array]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "difference": lambda u, v: np.abs(u - v),
    "product": lambda u, v: u * v,
}


def classifier_of(model_folder: Path) -> Classify | None:
    """The classifier beside the model in a folder; None where there is none.

    Raises ModelError, naming the file, where there is one that cannot be read.
    """
    folder = model_folder / FOLDER
    return _load(folder) if folder.is_dir() else None


def _load(folder: Path) -> Classify:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        parts = [PARTS[name] for name in config["concat"]]
        shape = (config["classes"], len(parts) * config["dimension"])
        tensors = load_file(folder / "model.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise ModelError(
            f"the classifier in {folder} cannot be read ({error!r}): copy the model again, or train it anew"
        ) from error
    # Alone or within a layer: `weight` or `linear.weight`.
    found = {name.rpartition(".")[2]: tensor.astype(np.float32) for name, tensor in tensors.items()}
    shapes = {name: tensor.shape for name, tensor in found.items()}
    if shapes != {"weight": shape, "bias": shape[:1]}:
        raise ModelError(
            f"{folder / 'model.safetensors'}: expected weight {shape} and bias {shape[:1]}, as config.json says, found "
            f"{shapes}; copy the model again"
        )

    def classify(u: Array, v: Array) -> Array:
        logits: Array = (
            np.concatenate([part(u, v) for part in parts], axis=1) @ found["weight"].T + found["bias"]
        )
        return logits

    return classify
