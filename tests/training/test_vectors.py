"""What is computed once for a run: the vectors of a frozen backbone, of a teacher and of a guide."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sbert_train.data.collator import collate
from sbert_train.errors import ConfigError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training import fit as fit_module
from sbert_train.training.data import load_training_data
from sbert_train.training.objectives import run_objectives
from sbert_train.training.prepare import load_encoder
from tests.tiny import make_encoder
from tests.training.runs import (
    config,
    losses,
    run,
    without_dropout,
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

    monkeypatch.setattr(fit_module, "FrozenTexts", lambda encoder: None)
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
    from sbert_train.model.head import HeadSpec, make_head

    teacher = make_encoder(seed=3, head=None if size == 32 else make_head(HeadSpec(size, "identity"), 32))
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
    from sbert_train.model.head import HeadSpec, make_head

    make_encoder(seed=3, head=make_head(HeadSpec(8), 32)).save(tmp_path / "teacher")
    with pytest.raises(
        ConfigError, match=r"objective\.teacher: expected at least 32 dimensions.*found 8; give the"
    ):
        run(
            tmp_path,
            tiny_model,
            objective={"name": "embedding_distillation", "teacher": str(tmp_path / "teacher")},
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
