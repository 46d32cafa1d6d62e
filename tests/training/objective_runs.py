"""Data and configuration blocks with which each objective can run."""

from pathlib import Path
from typing import Any

import torch

from sbert_train.config import RunConfig
from sbert_train.objectives.registry import OBJECTIVES
from sbert_train.training.arguments import training_arguments
from sbert_train.training.data import load_training_data
from sbert_train.training.objectives import build_objectives, run_objectives
from sbert_train.training.prepare import load_encoder
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.trainer import SentenceTrainer
from sbert_train.training.vectors import FrozenTexts
from tests.tiny import make_encoder
from tests.training.runs import (
    sentences,
    write_csv,
    write_triplets,
)

SHORT = {"max_steps": 2}


def write_nli(folder: Path, count: int = 24) -> Path:
    """Premises, hypotheses and one of three labels, or its parity."""
    rows = [(one, other, i % 3, i % 2) for i, (one, other, _, _) in enumerate(sentences(count, seed=7))]
    return write_csv(folder / "nli.csv", ("sentence1", "sentence2", "label", "parity"), rows)


def write_margins(folder: Path, count: int = 24) -> Path:
    rows = [(*row[:3], 3.0 + i % 5, i % 3) for i, row in enumerate(sentences(count, seed=8))]
    return write_csv(folder / "margins.csv", ("anchor", "positive", "negative", "score", "other"), rows)


def block_for(name: str, folder: Path, base: Path) -> dict[str, Any]:
    """The data and objective blocks with which an objective can run."""
    needs = OBJECTIVES[name].needs
    train: dict[str, Any] = {"source": str(write_triplets(folder)), "name": "set"}
    if "label" in needs:
        train |= {"source": str(write_nli(folder)), "columns": {}}
        if OBJECTIVES[name].labels == "binary":
            train["columns"] = {"label": "parity"}
    elif name == "margin_mse":
        train["source"] = str(write_margins(folder))
    elif "score" in needs:
        rows = [(*row[:2], row[3]) for row in sentences(24, seed=9)]
        train |= {"source": str(write_csv(folder / "s.csv", ("sentence1", "sentence2", "score"), rows))}
        train["score_range"] = [0, 5]
    objective: dict[str, Any] = {"name": name}
    if name == "embedding_distillation":
        make_encoder(seed=3).save(folder / "teacher")
        objective["teacher"] = str(folder / "teacher")
    return {"data": {"train": [train]}, "objective": objective}


def trainer_of(settings: RunConfig, **arguments: Any) -> SentenceTrainer:
    """The trainer that a run has, without the rest of the run."""
    args = training_arguments(settings, **arguments)
    torch.manual_seed(settings.seed)
    objectives = run_objectives(settings)
    encoder = load_encoder(settings, args.device)
    frozen = FrozenTexts(encoder) if settings.model.freeze == "backbone" else None
    data = load_training_data(settings, encoder, objectives, batch_size=8, drop_last=False, frozen=frozen)
    losses = build_objectives(objectives, encoder, data.classes)
    model = SiameseModel(encoder, losses, frozen=frozen is not None)
    return SentenceTrainer(model, args, rows=data.rows, batches=data.batches, frozen=frozen)
