"""Our side: `sbert-train fit` with a configuration of the same settings, over the same rows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import Row, write_jsonl
from benchmarks.quality.experiments import BASE, Experiment, training_arguments
from benchmarks.quality.trained import Trained
from sbert_train.config import RunConfig
from sbert_train.objectives.softmax import CLASSIFIER
from sbert_train.training.fit import fit


def train(
    experiment: Experiment, rows: Sequence[Row], seed: int, folder: Path, steps: int | None = None
) -> Trained:
    """Train with sbert-train; its run is the folder.

    Args:
        steps: see `training_arguments`.
    """
    write_jsonl(folder / "train.jsonl", rows)
    config = RunConfig.model_validate(run_config(experiment, folder, seed, steps))
    result = fit(config, overwrite=True)
    classifier = result.folder.model / CLASSIFIER / "model.safetensors"
    training = json.loads(result.folder.report.read_text(encoding="utf-8"))["training"]
    return Trained(
        model=result.folder.model,
        classifier=classifier if classifier.is_file() else None,
        steps=training["steps"],
        rows_seen=round(training["pairs_per_second"] * training["train_runtime"]),
        seconds=training["train_runtime"],
    )


def run_config(experiment: Experiment, folder: Path, seed: int, steps: int | None) -> Mapping[str, Any]:
    """The configuration of an experiment over the rows in folder/train.jsonl, as `RunConfig` takes it."""
    file, second = str(folder / "train.jsonl"), experiment.second_objective
    sets = [{"source": file}, {"name": "second", "source": file, "objective": second}]
    return {
        "output_dir": str(folder / "run"),
        "seed": seed,
        "model": {"base": BASE, **experiment.model},
        "data": {
            "train": sets if second else sets[:1],
            "mixing": {"strategy": "round_robin" if second else "proportional"},
            "no_duplicates": experiment.no_duplicates,
        },
        "objective": experiment.objective,
        "train": {**training_arguments(experiment, steps), "load_best_model_at_end": False},
        "engine": {"precision": "fp32"},
    }
