"""Texts -> embeddings by either side's `encode`, timed; the embeddings stay, so that they can be compared.

Shapes: N texts, D dimensions.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.speed.runs import OURS, Run
from sbert_train.training.memory import MemoryMeter

WARM_UP = 64
"""Texts that are encoded before the clock starts."""

Array = NDArray[np.float32]


def encode(run: Run, texts: Sequence[str], model: Path, folder: Path) -> tuple[float, MemoryMeter, int]:
    """Encode texts; folder/SIDE.npy has the (N, D) embeddings.

    Returns:
        Seconds, the meter of the memory that it took, and its highest mark.
    """
    embed = ours(run, model) if run.side == OURS else peer(run, model)
    embed(list(texts[:WARM_UP]))
    meter = MemoryMeter()
    start = time.perf_counter()
    embeddings = embed(list(texts))
    seconds = time.perf_counter() - start
    peak = meter.peak()
    np.save(folder / f"{run.side}.npy", embeddings)
    return seconds, meter, peak


def ours(run: Run, model: Path) -> Callable[[list[str]], Array]:
    """`SentenceEncoder.encode` with its defaults."""
    from sbert_train.model.encoder import SentenceEncoder

    encoder = SentenceEncoder.load(model)
    options: dict[str, Any] = {"precision": "bf16"} if run.cell.precision == "bf16" else {}
    return lambda texts: np.asarray(encoder.encode(texts, **options), dtype=np.float32)


def peer(run: Run, model: Path) -> Callable[[list[str]], Array]:
    """`SentenceTransformer.encode` with its defaults; for bf16 the weights are loaded so, as its documentation says."""
    from benchmarks.speed.peer import load

    options = {"dtype": torch.bfloat16} if run.cell.precision == "bf16" else {}
    encoder = load(run.side, model, **options)

    def embed(texts: list[str]) -> Array:
        found = encoder.encode(texts, convert_to_tensor=True, show_progress_bar=False)
        return np.asarray(found.float().cpu().numpy(), dtype=np.float32)

    return embed


def largest_difference(one: Path, other: Path) -> float:
    """Of any number of two files of (N, D) embeddings."""
    return float(np.abs(np.load(one) - np.load(other)).max())
