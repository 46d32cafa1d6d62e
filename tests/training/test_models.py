"""Runs of models that are more than a backbone and one head."""

from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from sbert_train.model.encoder import SentenceEncoder
from tests.training.runs import run

TEXTS = ["the cat saw the dog near the mat", "a bird"]


def test_a_run_with_two_heads_trains_both_and_says_so(tmp_path: Path, tiny_model: Path) -> None:
    head = {"dim": 8, "layers": 2, "shared": False}
    result, lines = run(
        tmp_path, tiny_model, model={"base": str(tiny_model), "head": head, "freeze": "backbone"}
    )
    model = result.folder.model
    assert "two heads (query, document) of 2 dense layers, 8 dimensions" in lines[0]
    tuned, theirs = SentenceEncoder.load(model), SentenceTransformer(str(model), device="cpu")
    queries, documents = tuned.encode(TEXTS, role="anchor"), tuned.encode(TEXTS, role="positive")
    np.testing.assert_allclose(theirs.encode_query(TEXTS), queries, atol=1e-5)
    np.testing.assert_allclose(theirs.encode_document(TEXTS), documents, atol=1e-5)
    backbone = SentenceEncoder.load(tiny_model).backbone.state_dict()
    assert all(torch.equal(weight, backbone[name]) for name, weight in tuned.backbone.state_dict().items())
    card = (model / "README.md").read_text()
    assert "encode_query(" in card and "encode_document(" in card


def test_a_run_with_adapters_leaves_a_plain_model_in_which_nothing_else_changed(
    tmp_path: Path, tiny_model: Path
) -> None:
    block = {"base": str(tiny_model), "lora": {"r": 4, "target_modules": ["query", "value"]}}
    result, lines = run(tmp_path, tiny_model, model=block, train={"learning_rate": 1e-2})
    model = result.folder.model
    [weights] = [line for line in lines if line.startswith("weights")]
    assert "LoRA of rank 4 in 4 linear layers (query, value: as model.lora.target_modules names" in weights
    tuned, base = SentenceEncoder.load(model), SentenceEncoder.load(tiny_model)
    before = base.backbone.state_dict()
    changed = {name for name, w in tuned.backbone.state_dict().items() if not torch.equal(w, before[name])}
    assert changed == {
        f"encoder.layer.{i}.attention.self.{name}.weight" for i in (0, 1) for name in ("query", "value")
    }
    np.testing.assert_allclose(
        SentenceTransformer(str(model), device="cpu").encode(TEXTS), tuned.encode(TEXTS), atol=1e-5
    )
    assert np.abs(tuned.encode(TEXTS) - base.encode(TEXTS)).max() > 0.01, "training moved the embeddings"
