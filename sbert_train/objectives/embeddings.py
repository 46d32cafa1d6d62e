"""What an objective sees: the embeddings of a batch by role, and nothing of the model behind them.

B rows, K negatives of a row, D dimensions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from sbert_train.data.batch import TextBatch


@dataclass(frozen=True)
class RoleEmbeddings:
    """The embeddings of the rows of a batch.

    Attributes:
        vectors: role -> (B, D) float32; (B, K, D) for `negative`.
        text_keys: role -> (B,) or (B, K) int64; equal texts have equal keys, in every process.
        labels: (B,) scores or classes, or None.
    """

    vectors: Mapping[str, Tensor]
    text_keys: Mapping[str, Tensor]
    labels: Tensor | None = None

    @classmethod
    def of(cls, batch: TextBatch, vectors: Mapping[str, Tensor]) -> "RoleEmbeddings":
        """The embeddings that an encoder gave the rows of a batch, with the keys of their texts."""
        return cls(
            vectors=vectors,
            text_keys={role: batch.text_keys[texts] for role, texts in batch.index.items()},
            labels=batch.labels,
        )
