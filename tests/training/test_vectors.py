"""What is computed once for a run: the vectors of a frozen backbone, of a teacher and of a guide."""

import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sbert_train.data.collator import collate
from sbert_train.data.rows import SetRows
from sbert_train.data.vectors import RowVectors
from sbert_train.errors import ConfigError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.objectives.distillation import principal_components
from sbert_train.objectives.registry import objective_spec
from sbert_train.training import parts as parts_module
from sbert_train.training import vectors as vectors_module
from sbert_train.training.data import load_training_data
from sbert_train.training.objectives import run_objectives
from sbert_train.training.prepare import load_encoder
from sbert_train.training.vectors import FrozenTexts, References
from tests.tiny import make_encoder, trained_head
from tests.training.objective_runs import trainer_of
from tests.training.runs import (
    config,
    losses,
    run,
    without_dropout,
    write_csv,
)

HEAD = {"dim": 16, "activation": "identity"}


def test_a_frozen_backbone_runs_once_and_the_head_trains_as_if_it_ran_each_time(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = without_dropout(tiny_model, tmp_path)
    asked: list[int] = []
    pool_texts = SentenceEncoder.pool_texts

    def watched(self: SentenceEncoder, texts: Any, **options: Any) -> Any:
        asked.append(len(texts))
        return pool_texts(self, texts, **options)

    monkeypatch.setattr(SentenceEncoder, "pool_texts", watched)
    model = {"base": str(base), "head": HEAD, "freeze": "backbone", "prompts": {"anchor": "a cat "}}
    result, lines = run(tmp_path, base, model=model, train={"num_train_epochs": 2})
    read = sum(asked)
    assert any("the backbone is frozen: the vectors of 1" in line for line in lines)
    again, _ = run(tmp_path, base, model=model, train={"num_train_epochs": 2})
    assert sum(asked) == read, "a second run finds the vectors on disk, of training and of evaluation"
    assert (again.folder.model / "2_Dense" / "model.safetensors").read_bytes() == (
        result.folder.model / "2_Dense" / "model.safetensors"
    ).read_bytes()

    monkeypatch.setattr(parts_module, "FrozenTexts", lambda encoder: None)
    slow, lines = run(
        tmp_path, base, model=model, train={"num_train_epochs": 2}, output_dir=str(tmp_path / "slow")
    )
    assert any(line.startswith("engine     packed") for line in lines)
    assert losses(slow) == pytest.approx(losses(result), rel=1e-4)
    assert losses(result)[-1] < losses(result)[0], "the head did train"
    texts = ["the cat saw the dog", "a bird"]
    np.testing.assert_allclose(
        SentenceEncoder.load(slow.folder.model).encode(texts, role="anchor"),
        SentenceEncoder.load(result.folder.model).encode(texts, role="anchor"),
        atol=1e-4,
    )
    checkpoint = result.folder.checkpoints / "checkpoint-12" / "model.safetensors"
    assert set(load_file(checkpoint)) == {"weights.0.linear.weight", "weights.0.linear.bias"}
    frozen, before = (load_file(folder / "model.safetensors") for folder in (result.folder.model, base))
    assert all(torch.equal(frozen[name], before[name]) for name in before)


@pytest.mark.parametrize("size", [32, 48])
def test_a_student_comes_closer_to_its_teacher_also_to_one_of_more_dimensions(
    tmp_path: Path, tiny_model: Path, size: int
) -> None:
    teacher = make_encoder(seed=3, head=None if size == 32 else trained_head(HeadSpec(size, "identity"), 32))
    teacher.save(tmp_path / "teacher")
    result, lines = run(
        tmp_path,
        tiny_model,
        objective={"name": "embedding_distillation", "teacher": str(tmp_path / "teacher")},
        train={"num_train_epochs": 8},
    )
    assert any(
        line == "objective  embedding_distillation (distance mse, taught by another model)" for line in lines
    )
    assert losses(result)[-1] < 0.6 * losses(result)[0]


def test_a_teacher_of_fewer_dimensions_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    make_encoder(seed=3, head=trained_head(HeadSpec(8), 32)).save(tmp_path / "teacher")
    with pytest.raises(
        ConfigError, match=r"objective\.teacher: expected at least 32 dimensions.*found 8; give the"
    ):
        run(
            tmp_path,
            tiny_model,
            objective={"name": "embedding_distillation", "teacher": str(tmp_path / "teacher")},
        )


def test_the_principal_components_of_many_texts_are_those_of_an_even_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors_module, "SAMPLED", 7)
    of_large, of_small = (
        SetRows(datasets.Dataset.from_list([{}]), reference=RowVectors(table, {}))
        for table in (np.eye(20, 40, dtype=np.float32), -np.eye(5, 40, dtype=np.float32))
    )
    seen: list[Any] = []

    def watched(sample: Any, size: int) -> Any:
        seen.append(sample)
        return principal_components(sample, size)

    monkeypatch.setattr(vectors_module, "principal_components", watched)
    student = make_encoder(head=trained_head(HeadSpec(4), 32))
    fitted = References(student).fitted([of_large, of_small], [True, True])
    (sample,) = seen
    assert sample.argmax(axis=1).tolist()[:5] == [0, 4, 8, 12, 16], "every fourth of 20"
    assert sample.argmin(axis=1).tolist()[5:] == [0, 4], "and of 5: seven of both"
    for one in fitted:
        assert one.reference is not None and one.reference.projection is not None
        assert one.reference.projection.shape == (40, 4), "both are projected alike"


def test_each_guide_is_asked_itself_and_in_all_of_its_dimensions(tmp_path: Path, tiny_model: Path) -> None:
    rows = datasets.Dataset.from_list([{"anchor": "the cat", "positive": "a dog"}])
    found = []
    for seed in (3, 4):
        guide = make_encoder(seed=seed, head=trained_head(HeadSpec(48, "identity"), 32))
        guide.save(tmp_path / f"guide{seed}")
        references = References(make_encoder())
        spec = objective_spec("in_batch_negatives", guide=str(tmp_path / f"guide{seed}"))
        own = references.of_rows(spec, rows)
        (fitted,) = references.fitted([SetRows(rows, reference=own)], [spec.kind.is_taught])
        assert fitted.reference is not None
        vectors = fitted.reference.vectors("anchor", np.array([0]))
        np.testing.assert_allclose(vectors, guide.encode(["the cat"], role="anchor"), atol=1e-6)
        found.append(vectors)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_a_guide_with_two_heads_embeds_each_role_by_its_own(tmp_path: Path, tiny_model: Path) -> None:
    guide = make_encoder(seed=3, head=trained_head(HeadSpec(8, shared=False), 32))
    guide.save(tmp_path / "guide")
    settings = config(
        tmp_path, tiny_model, objective={"name": "in_batch_negatives", "guide": str(tmp_path / "guide")}
    )
    encoder = load_encoder(settings, torch.device("cpu"))
    data = load_training_data(settings, encoder, run_objectives(settings), batch_size=8, drop_last=False)
    batch, texts = collate(data.rows.__getitems__([5, 2])), data.sets[0].rows[[5, 2]]
    for role in ("anchor", "positive"):
        expected = guide.encode(texts[role], role=role)
        np.testing.assert_allclose(batch.reference[role], expected, atol=1e-6)


def test_vectors_are_computed_anew_for_whatever_they_depend_on(tmp_path: Path, tiny_model: Path) -> None:
    asked: list[str] = []
    rows = datasets.Dataset.from_list([{"anchor": "the cat saw the dog"}])

    def vector_of(**settings: Any) -> Any:
        encoder = make_encoder(**settings)
        texts = FrozenTexts(encoder)
        asked.append(json.dumps(texts._identity, default=str))
        return texts.encode(rows["anchor"][:], "anchor")

    plain = vector_of()
    assert np.array_equal(plain, vector_of()) and asked[0] == asked[1]
    for other in ({"pooling": "max"}, {"max_length": 4}, {"seed": 1}, {"prompts": {"query": "a bird "}}):
        assert not np.array_equal(plain, vector_of(**other)), other

    encoder = make_encoder().train()
    before = FrozenTexts(encoder).encode(["the cat"], "anchor")
    assert encoder.training, "left as it was"
    encoder.backbone.config.layer_norm_eps = 0.5  # of the same weights another function
    for module in encoder.backbone.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 0.5
    assert not np.array_equal(before, FrozenTexts(encoder).encode(["the cat"], "anchor"))


def test_texts_of_the_same_tokens_are_the_same_to_a_frozen_run(tmp_path: Path, tiny_model: Path) -> None:
    rows = [("the cat", "a dog"), ("THE CAT", "a bird"), ("the fish", "a dog")]
    source = write_csv(tmp_path / "case.csv", ("anchor", "positive"), rows)
    model = {"base": str(tiny_model), "head": HEAD, "freeze": "backbone"}
    settings = config(tmp_path, tiny_model, model=model, data={"train": [{"source": str(source)}]})
    trainer = trainer_of(settings)
    batch = collate(trainer.rows.__getitems__([0, 1, 2]))
    assert batch.pooled is not None and len(batch.pooled) == 4
    assert batch.index["anchor"][0] == batch.index["anchor"][1]


def test_a_guide_that_reads_roles_differently_is_asked_for_each(tmp_path: Path, tiny_model: Path) -> None:
    """The same texts in both columns, so that only heads and prompts tell what is asked."""
    rows = datasets.Dataset.from_list([{"anchor": "the cat", "positive": "the cat"}])
    guides = {
        "heads": make_encoder(seed=3, head=trained_head(HeadSpec(40, shared=False), 32)),
        "prompts": make_encoder(seed=3, prompts={"query": "a bird ", "document": "a fish "}),
    }
    for name, guide in guides.items():
        guide.save(tmp_path / name)
        spec = objective_spec("in_batch_negatives", guide=str(tmp_path / name))
        found = References(make_encoder()).of_rows(spec, rows)
        assert found is not None
        for role in ("anchor", "positive"):
            np.testing.assert_allclose(
                found.vectors(role, np.array([0])), guide.encode(["the cat"], role=role), atol=1e-6
            )


def test_a_batch_carries_what_the_reference_makes_of_its_texts(tmp_path: Path, tiny_model: Path) -> None:
    guide = make_encoder(seed=3, prompts={"query": "a cat "})
    guide.save(tmp_path / "guide")
    settings = config(
        tmp_path, tiny_model, objective={"name": "in_batch_negatives", "guide": str(tmp_path / "guide")}
    )
    encoder = load_encoder(settings, torch.device("cpu"))
    data = load_training_data(settings, encoder, run_objectives(settings), batch_size=8, drop_last=False)
    batch = collate(data.rows.__getitems__([5, 2]))
    texts = data.sets[0].rows[[5, 2]]
    for role, wanted in (("anchor", texts["anchor"]), ("negative", [one for (one,) in texts["negative"]])):
        np.testing.assert_allclose(
            batch.reference[role].reshape(2, -1), guide.encode(wanted, role=role), atol=1e-6
        )
    assert np.abs(guide.encode(texts["anchor"]) - guide.encode(texts["anchor"], role="anchor")).max() > 1e-3
