"""What an objective sees: the embeddings of a batch by role, and nothing of the model behind them.

B rows, K negatives of a row, D dimensions, Dr dimensions of a reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor
from torch.nn import functional as F

from sbert_train.data.batch import TextBatch
from sbert_train.errors import ModelError


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
    def of(cls, batch: TextBatch, vectors: Mapping[str, Tensor]) -> "RoleEmbeddings":
        """The embeddings that an encoder gave the rows of a batch, with the keys of their texts."""
        return cls(
            vectors=vectors,
            text_keys={role: batch.text_keys[texts] for role, texts in batch.index.items()},
            labels=batch.labels,
            reference=batch.reference,
        )

    def split(self, rows: int) -> list["RoleEmbeddings"]:
        """The same in pieces of so many rows, the last of what is left."""
        count = len(next(iter(self.vectors.values())))
        vectors, keys, reference = (
            {role: tensor.split(rows) for role, tensor in of_role.items()}
            for of_role in (self.vectors, self.text_keys, self.reference)
        )
        labels = None if self.labels is None else self.labels.split(rows)
        return [
            RoleEmbeddings(
                vectors={role: pieces[i] for role, pieces in vectors.items()},
                text_keys={role: pieces[i] for role, pieces in keys.items()},
                labels=None if labels is None else labels[i],
                reference={role: pieces[i] for role, pieces in reference.items()},
            )
            for i in range(-(-count // rows))
        ]

    def truncated(self, dimension: int, *, cut_reference: bool = False) -> "RoleEmbeddings":
        """The same rows with the first dimensions of every vector, scaled to length 1.

        Args:
            cut_reference: do likewise with the reference: a teacher whose vectors these are to equal has to be cut,
                a guide that is asked for similarities stays whole.

        Raises:
            ModelError: the vectors to be cut have fewer dimensions.
        """

        def cut(rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
            for role, vectors in rows.items():
                width = vectors.shape[-1]
                if width < dimension:
                    raise ModelError(
                        f"matryoshka: expected embeddings of at least {dimension} dimensions; found {width} in the "
                        f"role {role}; name no more dimensions than that"
                    )
            return {role: F.normalize(vectors[..., :dimension], dim=-1) for role, vectors in rows.items()}

        reference = cut(self.reference) if cut_reference else self.reference
        return replace(self, vectors=cut(self.vectors), reference=reference)
