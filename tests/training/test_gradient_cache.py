"""Whole runs with the gradient cache end where runs without it do."""

from pathlib import Path
from typing import Any

import pytest

from sbert_train.model import gradient_cache
from sbert_train.model.encoder import SentenceEncoder
from tests.training.runs import losses, run, without_dropout

TEXTS = ["the cat saw the dog near the mat", "a bird"]
ENGINE = {"gradient_cache": 60}
RUNS: dict[str, dict[str, Any]] = {
    "hard negatives": {},
    "symmetric, Matryoshka, accumulation": {
        "objective": {"name": "in_batch_negatives", "symmetric": True, "matryoshka_dims": [16, 8]},
        "train": {"gradient_accumulation_steps": 2},
    },
    "a learnt scale, low rank": {
        "objective": {"name": "in_batch_negatives", "learnable_scale": True},
        "model": {"lora": {"r": 2, "dropout": 0.0, "target_modules": ["query", "value"]}},
    },
    "bf16": {"engine": {"precision": "bf16"}},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_cached_run_ends_where_an_uncached_one_does(name: str, tmp_path: Path, tiny_model: Path) -> None:
    base = without_dropout(tiny_model, tmp_path)
    blocks = dict(RUNS[name])
    blocks["model"] = {"base": str(base), **blocks.get("model", {})}
    engine = blocks.pop("engine", {})
    plain, _ = run(tmp_path, base, **blocks, engine=engine, output_dir=str(tmp_path / "plain"))
    cached, lines = run(tmp_path, base, **blocks, engine=ENGINE | engine, output_dir=str(tmp_path / "cached"))
    assert any("memory     gradient cache: " in one and "micro-batches of at most 60" in one for one in lines)
    tolerance = 5e-2 if engine else 1e-4
    assert losses(cached) == pytest.approx(losses(plain), rel=tolerance)
    vectors, expected = (
        SentenceEncoder.load(result.folder.model).encode(TEXTS) for result in (cached, plain)
    )
    assert vectors == pytest.approx(expected, abs=10 * tolerance)


def test_a_run_with_dropout_draws_for_the_second_encoding_what_it_drew_for_the_first(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached, _ = run(tmp_path, tiny_model, engine=ENGINE, output_dir=str(tmp_path / "cached"))
    monkeypatch.setattr(gradient_cache, "checkpoint", lambda function, *args, **_: function(*args))
    kept, _ = run(tmp_path, tiny_model, engine=ENGINE, output_dir=str(tmp_path / "kept"))
    still, _ = run(
        tmp_path,
        without_dropout(tiny_model, tmp_path),
        engine=ENGINE,
        output_dir=str(tmp_path / "still"),
    )
    assert losses(cached) == pytest.approx(losses(kept), rel=1e-5)
    assert losses(still) != pytest.approx(losses(kept), rel=1e-2), "dropout was on"


def test_a_batch_of_one_micro_batch_is_said_to_be_encoded_once(tmp_path: Path, tiny_model: Path) -> None:
    _, lines = run(tmp_path, tiny_model, engine={"gradient_cache": 100_000})
    assert "memory     gradient cache: a first batch of one micro-batch: it is encoded once" in lines
    assert "attention  our own, with fast dropout" in lines
