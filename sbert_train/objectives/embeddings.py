"""What an objective sees: the embeddings of a batch by role, and nothing of the model behind them.

B rows, K negatives of a row, D dimensions, Dr dimensions of a reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from sbert_train.data.batch import TextBatch


@dataclass(frozen=True)
class RoleEmbeddings:
    """The embeddings of the rows of a batch.

    Attributes:
        vectors: role -> (B, D) float32; (B, K, D) for `negative`.
        text_keys: role -> (B,) or (B, K) int64; equal texts have equal keys, in every process.
        labels: (B,) scores or classes, (B, K) or (B, 1 + K) scores of a teacher, or None.
        reference: role -> (B, Dr) float32, (B, K, Dr) for `negative`, without gradient: what another encoder, a
            teacher or a guide, makes of the same texts; empty where the objective asks for none.
    """

    vectors: Mapping[str, Tensor]
    text_keys: Mapping[str, Tensor]
    labels: Tensor | None = None
    reference: Mapping[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: TextBatch, embeddings: Tensor) -> "RoleEmbeddings":
        """Sort the (N, D) embeddings of a batch's distinct texts into its rows."""
        return cls(
            vectors={role: embeddings[texts] for role, texts in batch.index.items()},
            text_keys={role: batch.text_keys[texts] for role, texts in batch.index.items()},
            labels=batch.labels,
        )
