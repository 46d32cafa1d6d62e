"""Encoders that look embeddings up in a table, so that a test chooses every vector."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from sbert_train.evaluation.encoding import Encode

Vector = Sequence[float]


class LookUp:
    """An encode function over a table of text -> vector; it remembers what it was asked."""

    def __init__(self, vectors: Mapping[str, Vector]) -> None:
        self.vectors = vectors
        self.calls: list[tuple[list[str], str]] = []

    def __call__(self, texts: Sequence[str], role: str) -> Any:
        self.calls.append((list(texts), role))
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


@pytest.fixture
def lookup() -> Callable[[Mapping[str, Vector]], LookUp]:
    """Make an encode function from a table of text -> vector."""
    return LookUp


@pytest.fixture
def at_angles() -> Callable[[Mapping[str, float]], LookUp]:
    """Make an encode function from a table of text -> angle in degrees on the unit circle."""

    def make(degrees: Mapping[str, float]) -> LookUp:
        radians = {text: np.deg2rad(angle) for text, angle in degrees.items()}
        return LookUp({text: (np.cos(angle), np.sin(angle)) for text, angle in radians.items()})

    return make


@pytest.fixture
def hashed() -> Encode:
    """An encode function that gives every text its own random direction, the same in every role."""

    def encode(texts: Sequence[str], role: str) -> Any:
        seeds = [list(text.encode()) for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=8) for seed in seeds], dtype=np.float32)

    return encode
