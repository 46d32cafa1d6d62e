"""Our side: `sbert-train fit`, as a user starts it, over rows that stand where its sampler finds them in order."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import Row, write_jsonl
from benchmarks.speed.clock import Clock, watching
from benchmarks.speed.runs import Run
from benchmarks.speed.sameness import OBJECTIVES, training_arguments
from sbert_train.config import RunConfig
from sbert_train.data.mixing import Mix, MixedBatches
from sbert_train.training.fit import fit


def train(run: Run, rows: Sequence[Row], model: Path, folder: Path) -> Clock:
    """Train on rows in this order, or in the order of the defaults; what was seen of it.

    Args:
        folder: for the rows and the run, which is left there.
    """
    file = folder / "train.jsonl"
    write_jsonl(file, placed(rows, run.cell.batch, run.seed) if run.cell.batch else rows)
    config = RunConfig.model_validate(run_config(run, model, file, folder / "run"))
    with watching(run) as clock:
        fit(config, overwrite=True, say=lambda _: None)
    return clock


def placed(rows: Sequence[Row], batch: int, seed: int) -> list[Row]:
    """The same rows, each at the place from which our sampler takes it at its turn: nothing of ours is replaced."""
    sampler = MixedBatches([len(rows)], batch, mix=Mix(), seed=seed)
    turns = [place for places in sampler for place in places]
    stand: list[Row] = [{}] * len(rows)
    for row, place in zip(rows, turns, strict=True):
        stand[place] = row
    return stand


def run_config(run: Run, model: Path, file: Path, output: Path) -> Mapping[str, Any]:
    """The configuration of a run as `RunConfig` takes it; without a batch, nothing but model, data and objective."""
    cell = run.cell
    least = {
        "output_dir": str(output),
        "model": {"base": str(model)},
        "data": {"train": [{"source": str(file)}]},
        "objective": {"name": cell.objective},
    }
    if not cell.batch:
        return least
    cache = {} if cell.micro_tokens is None else {"gradient_cache": cell.micro_tokens}
    # The peer masks no text that equals the positive, and does not keep rows apart that share a text.
    own = {"mask_identical": False} if cell.objective == "in_batch_negatives" else {}
    return {
        **least,
        "seed": run.seed,
        "data": {"train": [{"source": str(file)}], "no_duplicates": False},
        "objective": {**OBJECTIVES[cell.objective], **own},
        "train": training_arguments(run),
        "engine": {"precision": cell.precision, **cache},
    }
