"""What a model says of the probes, and when an export says the same.

P prompts, S batch sizes, N texts, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sbert_train.errors import ExportError
from sbert_train.export.probes import PROBES
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import TwoHeads
from sbert_train.model.roles import SIDES

TOLERANCE = 1e-5
"""The largest difference of a component, as a share of the largest component where that is over 1."""


@dataclass(frozen=True)
class Reference:
    """The embeddings that an export must give.

    Attributes:
        texts: N of them.
        prompts: P names of prompts; None for the model's default. Of a model with two heads: query and document, the
            names of both.
        embeddings: (P, N, D) float32.
    """

    texts: tuple[str, ...]
    prompts: tuple[str | None, ...]
    embeddings: NDArray[np.float32]


def take_reference(encoder: SentenceEncoder, probes: Sequence[str] = PROBES) -> Reference:
    """Embed the probes with each of the encoder's prompts, or by both of its heads; those without any token are left
    out."""
    texts = tuple(text for text, ids in zip(probes, encoder.tokenize(probes), strict=True) if len(ids))
    prompts = SIDES if isinstance(encoder.head, TwoHeads) else (None, *encoder.prompts)
    return Reference(texts, prompts, np.stack([encoder.encode(texts, role=prompt) for prompt in prompts]))


def require_equal(embeddings: NDArray[np.float32], reference: Reference, reader: str) -> float:
    """The largest difference between what an export gives and what it must give.

    Args:
        embeddings: (P * S, N, D), prompt by prompt.
        reader: what loaded the export, for the message.

    Returns:
        The largest difference of a component, as a share of the largest component where that is over 1.

    Raises:
        ExportError: the difference is over TOLERANCE or not a number, or the shapes differ.
    """
    runs, *shape = embeddings.shape
    expected = reference.embeddings
    if shape != list(expected.shape[1:]):
        raise ExportError(
            f"the export is not the model: {reader} gives {shape[-1]} dimensions, expected {expected.shape[-1]}"
        )
    expected = np.repeat(expected, runs // len(expected), axis=0)
    difference = float(np.abs(embeddings - expected).max() / max(1.0, float(np.abs(expected).max())))
    if not difference <= TOLERANCE:  # so that NaN fails, too
        raise ExportError(
            f"the export is not the model: as {reader} reads it, its embeddings differ by {difference:.1e}, "
            f"expected at most {TOLERANCE:.0e}"
        )
    return difference
