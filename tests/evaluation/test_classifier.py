"""The classifier beside a model is read as training wrote it, and what is broken is named."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from sbert_train.errors import ModelError
from sbert_train.evaluation.classifier import classifier_of

GENERATOR = np.random.default_rng(0)
WEIGHT = GENERATOR.normal(size=(3, 12)).astype(np.float32)
BIAS = GENERATOR.normal(size=3).astype(np.float32)
CONFIG: dict[str, Any] = {
    "dimension": 4,
    "classes": 3,
    "concat": ["u", "v", "difference"],
    "normalize": False,
}


def write(model: Path, **changes: Any) -> Path:
    folder = model / "classifier"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    save_file({"weight": WEIGHT, "bias": BIAS}, folder / "model.safetensors")
    return model


def test_its_logits_are_those_of_the_formula(tmp_path: Path) -> None:
    classify = classifier_of(write(tmp_path))
    assert classify is not None
    u, v = GENERATOR.normal(size=(2, 5, 4)).astype(np.float32)
    expected = [WEIGHT @ np.concatenate([a, b, abs(a - b)]) + BIAS for a, b in zip(u, v, strict=True)]
    assert classify(u, v) == pytest.approx(np.array(expected), abs=1e-5)


def test_its_parts_are_laid_end_to_end_in_the_order_of_its_config(tmp_path: Path) -> None:
    classify = classifier_of(write(tmp_path, concat=["product", "difference", "v"]))
    assert classify is not None
    u, v = GENERATOR.normal(size=(2, 5, 4)).astype(np.float32)
    expected = [WEIGHT @ np.concatenate([a * b, abs(a - b), b]) + BIAS for a, b in zip(u, v, strict=True)]
    assert classify(u, v) == pytest.approx(np.array(expected), abs=1e-5)


def test_a_model_without_one_has_none(tmp_path: Path) -> None:
    assert classifier_of(tmp_path) is None


@pytest.mark.parametrize("changes", [{"concat": ["u", "w", "v"]}, {"classes": 4}, {"dimension": 5}])
def test_a_config_that_does_not_fit_is_an_error_naming_the_place(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(ModelError, match="classifier"):
        classifier_of(write(tmp_path, **changes))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_file_that_is_missing_or_broken_is_an_error_naming_the_place(tmp_path: Path, file: str) -> None:
    path = write(tmp_path) / "classifier" / file
    path.write_bytes(b"{broken")
    with pytest.raises(ModelError, match="classifier"):
        classifier_of(tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match="classifier"):
        classifier_of(tmp_path)
