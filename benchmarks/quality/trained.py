"""What a side hands over when it has trained."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trained:
    """A saved model and how it came to be."""

    model: Path
    """A folder that `SentenceEncoder.load` reads."""
    classifier: Path | None
    """For softmax: safetensors of `weight` (classes, 3 D) and `bias` (classes,) over [u, v, |u - v|]; else None."""
    steps: int
    rows_seen: int
    """Training rows that a loss was computed of, over all epochs."""
    seconds: float
    """From the first step to the last."""
