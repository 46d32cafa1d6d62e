"""Small data and configurations for tests of whole runs."""

import csv
import json
import random
from pathlib import Path
from typing import Any

from sbert_train.config import RunConfig
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training.fit import FitResult, fit

SUBJECTS = ("cat", "dog", "bird", "fish", "man", "woman", "child")
VERBS = ("saw", "fed", "chased")
PLACES = ("mat", "tree", "house", "river", "train", "city")


def sentences(count: int, seed: int = 0) -> list[tuple[str, str, str, float]]:
    """(anchor, positive, negative, score of anchor and positive) of the tiny vocabulary, all anchors different."""
    rng = random.Random(seed)
    rows: dict[str, tuple[str, str, str, float]] = {}
    while len(rows) < count:
        one, two = rng.sample(SUBJECTS, 2)
        verb, place, other = rng.choice(VERBS), *rng.sample(PLACES, 2)
        anchor = f"the {one} {verb} the {two} near the {place}"
        positive = rng.choice(
            [f"near the {place} the {two} {verb} a {one}", f"a {one} {verb} a {two} on the {place} ."]
        )
        rows[anchor] = (
            anchor,
            positive,
            f"the {two} {verb} the {one} near the {other}",
            rng.choice([0.0, 2.5, 4, 5]),
        )
    return list(rows.values())


def write_csv(path: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_triplets(folder: Path, count: int = 48, seed: int = 0) -> Path:
    rows = [row[:3] for row in sentences(count, seed)]
    return write_csv(folder / f"triplets{seed}.csv", ("anchor", "positive", "negative"), rows)


def write_scored(folder: Path, count: int = 24, seed: int = 100) -> Path:
    rows = [(row[0], row[1], row[3]) for row in sentences(count, seed)]
    return write_csv(folder / f"scored{seed}.csv", ("sentence1", "sentence2", "score"), rows)


def config(folder: Path, base: Path, **blocks: Any) -> RunConfig:
    """A run of a few steps on triplets, evaluated on scored pairs; blocks take the place of their defaults.

    In fp32 unless a test says otherwise: what it compares must not depend on whether the machine has bf16.
    """
    train = {"per_device_train_batch_size": 8, "learning_rate": 1e-3, "logging_steps": 1}
    return RunConfig.model_validate(
        {
            "output_dir": str(folder / "run"),
            "model": {"base": str(base)},
            "data": {
                "train": [{"source": str(write_triplets(folder))}],
                "eval": [
                    {
                        "name": "pairs",
                        "task": "sts",
                        "source": str(write_scored(folder)),
                        "score_range": [0, 5],
                    }
                ],
            },
            "objective": {"name": "in_batch_negatives"},
            **blocks,
            "train": {**train, **blocks.get("train", {})},
            "engine": {"precision": "fp32", **blocks.get("engine", {})},
        }
    )


def run(folder: Path, base: Path, **blocks: Any) -> tuple[FitResult, list[str]]:
    """A run with these blocks, and what it said."""
    lines: list[str] = []
    return fit(config(folder, base, **blocks), say=lines.append), lines


def log_of(result: FitResult) -> list[dict[str, float]]:
    return [json.loads(line) for line in result.folder.log.read_text().splitlines()]


def losses(result: FitResult) -> list[float]:
    """The loss of each step."""
    return [entry["loss"] for entry in log_of(result) if "loss" in entry]


def without_dropout(model: Path, folder: Path) -> Path:
    """A copy of a model that trains without dropout."""
    encoder = SentenceEncoder.load(model)
    encoder.backbone.config.hidden_dropout_prob = 0.0
    encoder.backbone.config.attention_probs_dropout_prob = 0.0
    encoder.save(folder / "base")
    return folder / "base"
