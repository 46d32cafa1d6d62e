"""Runs of models that are more than a backbone and one head."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from sbert_train.errors import ConfigError
from sbert_train.evaluation.models import evaluate_models
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.training.prepare import load_tasks
from tests.tiny import make_encoder, trained_head
from tests.training.objective_runs import SHORT, block_for, write_nli
from tests.training.runs import config, run, write_scored

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


@pytest.mark.parametrize("freeze", ["none", "backbone"])
@pytest.mark.parametrize("own", [None, HeadSpec(12, "tanh")], ids=["plain base", "base with a head"])
@pytest.mark.parametrize("dim", [8, 48])
def test_before_a_new_head_is_the_base_without_it(
    dim: int, own: HeadSpec | None, freeze: str, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    make_encoder(head=own and trained_head(own, 32)).save(base)
    blocks = {
        "model": {"base": str(base), "head": {"dim": dim}, "freeze": freeze},
        "objective": {"name": "in_batch_negatives", "matryoshka_dims": [dim, dim - 2, 4]},
    }
    settings = config(tmp_path, base, **blocks)
    result, _ = run(tmp_path, base, **blocks, train=SHORT)
    assert result.comparison is not None
    found = {task.task: task.scores["before"] for task in result.comparison.tasks}
    assert list(found) == ["pairs", f"pairs_dim{dim - 2}", "pairs_dim4"]
    (in_full, short) = evaluate_models([str(base)], load_tasks(settings.data.eval)[1], dims=[4]).tasks
    of_base = in_full.scores[str(base)]
    assert {name: one.value for name, one in found["pairs"].items()} == pytest.approx(
        {name: one.value for name, one in of_base.items()}, abs=1e-6
    )
    assert found["pairs_dim4"]["spearman_cosine"].value == pytest.approx(
        short.scores[str(base)]["spearman_cosine"].value, abs=1e-6
    )
    if dim == 48:
        assert found["pairs_dim46"] == found["pairs"], (
            "cut to more dimensions than it has, the base is all it is"
        )
    trained = SentenceEncoder.load(result.folder.model)
    assert (
        trained.dimension == dim and "Before is the base" in (result.folder.model / "README.md").read_text()
    )


def test_before_a_new_head_a_classifier_is_judged_as_it_begins(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    blocks["data"]["eval"] = [
        {"name": "nli", "source": str(write_nli(tmp_path)), "task": "nli"},
        {"name": "pairs", "source": str(write_scored(tmp_path)), "task": "sts"},
    ]
    blocks["model"] = {"base": str(tiny_model), "head": {"dim": 8}}
    nowhere = {"max_steps": 1, "learning_rate": 1e-12}
    result, _ = run(tmp_path, tiny_model, **blocks, train=nowhere)
    assert result.comparison is not None
    nli, pairs = ({one.task: one for one in result.comparison.tasks}[name] for name in ("nli", "pairs"))
    assert nli.scores["before"] == nli.scores["after"], "nothing was learnt"
    assert pairs.scores["before"] != pairs.scores["after"], "though the head is there now, and random"


@pytest.mark.parametrize("freeze", ["backbone", 2])
def test_on_a_frozen_encoder_a_classifier_trains_alone(
    freeze: str | int, tmp_path: Path, tiny_model: Path
) -> None:
    model = {"base": str(tiny_model), "freeze": freeze}
    blocks = block_for("softmax", tmp_path, tiny_model)
    blocks["data"]["eval"] = [{"name": "nli", "source": str(write_nli(tmp_path)), "task": "nli"}]
    train = {"num_train_epochs": 60, "learning_rate": 3e-2, "save_total_limit": 1}
    result, lines = run(tmp_path, tiny_model, **blocks, model=model, train=train)
    assert result.comparison is not None
    (task,) = result.comparison.tasks
    before, after = (task.scores[name]["accuracy"].value for name in ("before", "after"))
    assert before < 0.6 < after, "it learns its own training set"
    assert "weights    291 of " in lines[1]
    kept = list(result.folder.checkpoints.iterdir())
    assert 1 <= len(kept) <= 2, "the last, and the best if it is another"
    for checkpoint in kept if freeze == "backbone" else ():
        assert set(load_file(checkpoint / "model.safetensors")) == {
            "objectives.0.loss.linear.weight",
            "objectives.0.loss.linear.bias",
        }
    np.testing.assert_array_equal(
        SentenceEncoder.load(result.folder.model).encode(TEXTS),
        SentenceEncoder.load(tiny_model).encode(TEXTS),
    )


@pytest.mark.parametrize("freeze", ["backbone", 2])
def test_a_run_with_nothing_to_train_is_refused(freeze: str | int, tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.freeze: nothing is left to train, as there is no head"):
        run(tmp_path, tiny_model, model={"base": str(tiny_model), "freeze": freeze})
    assert not (tmp_path / "run").exists()
