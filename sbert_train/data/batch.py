"""The packed batch: all texts of all roles of a batch, laid end to end in one row of tokens.

N texts (distinct), M texts (as they stand in the rows), T tokens (of all texts), B rows, K negatives of a row,
H dimensions of the backbone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sbert_train.data.keys import hash_texts

TokenIds = NDArray[np.int32]


@dataclass(frozen=True)
class TextBatch:
    """What the encoder reads: N distinct texts, shortest first, without padding.

    Attributes:
        input_ids: (T,) int64, the token ids of text 0, then those of text 1, and so on.
        position_ids: (T,) int64, the place of each token within its text, from 0.
        lengths: N ints on the host, ascending; their sum is T.
        text_keys: (N,) int64, a hash of each text: equal texts have equal keys in every process.
        index: role -> (B,) int64, or (B, K) for `negative`: the text that stands in that role of each row.
        labels: (B,) float32 scores, (B, S) where a row has several, or (B,) int64 classes; None when the rows have
            neither.
        objective: the number of the run's objective that these rows are for.
        pooled: (N, H) float32, the pooled vectors of the texts, where a frozen backbone gave them before: there are no
            input_ids, position_ids and lengths then. None where the backbone is to be run.
        reference: role -> (B, R) float32, or (B, K, R) for `negative`: embeddings of the same texts by another encoder,
            a teacher or a guide, of R dimensions.
    """

    input_ids: Tensor
    position_ids: Tensor
    lengths: tuple[int, ...]
    text_keys: Tensor
    index: Mapping[str, Tensor]
    labels: Tensor | None = None
    objective: int = 0
    pooled: Tensor | None = None
    reference: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """B."""
        return len(next(iter(self.index.values())))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "TextBatch":
        """The same batch on another device (the signature that accelerate calls)."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=non_blocking)

        return replace(
            self,
            input_ids=move(self.input_ids),
            position_ids=move(self.position_ids),
            text_keys=move(self.text_keys),
            index={role: move(texts) for role, texts in self.index.items()},
            labels=None if self.labels is None else move(self.labels),
            pooled=None if self.pooled is None else move(self.pooled),
            reference={role: move(vectors) for role, vectors in self.reference.items()},
        )


def pool_batch(keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> tuple[TextBatch, NDArray[np.int64]]:
    """What `pack` gives, of texts whose pooled vectors are known: each distinct text once.

    Args:
        keys: (M,) a hash of each text and its prompt.
        vectors: (M, H) float32.
    """
    distinct, first, places = np.unique(keys, return_index=True, return_inverse=True)
    empty = torch.empty(0, dtype=torch.int64)
    batch = TextBatch(
        input_ids=empty,
        position_ids=empty,
        lengths=(),
        text_keys=torch.from_numpy(distinct),
        index={},
        pooled=torch.from_numpy(vectors[first]),
    )
    return batch, places


def pack(texts: Sequence[TokenIds]) -> tuple[TextBatch, NDArray[np.int64]]:
    """Lay texts end to end, shortest first, each distinct text once; of one length, in the order that they came in.

    Args:
        texts: token ids of each text, with special tokens; none of them empty.

    Returns:
        The batch, its index still without roles, and an int64 array with the place of texts[i] in the batch.
    """
    all_lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ids = np.concatenate(texts)
    keys, first, number = np.unique(hash_texts(ids, all_lengths), return_index=True, return_inverse=True)

    order = np.lexsort((first, all_lengths[first]))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    chosen = first[order]
    lengths = all_lengths[chosen]
    positions = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    begins = np.cumsum(all_lengths) - all_lengths
    batch = TextBatch(
        input_ids=torch.from_numpy(ids[np.repeat(begins[chosen], lengths) + positions].astype(np.int64)),
        position_ids=torch.from_numpy(positions),
        lengths=tuple(lengths.tolist()),
        text_keys=torch.from_numpy(keys[order]),
        index={},
    )
    return batch, place[number]
