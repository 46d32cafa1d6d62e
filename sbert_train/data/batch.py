"""The packed batch: all texts of all roles of a batch, laid end to end in one row of tokens.

N texts (distinct), T tokens (of all texts), B rows, K negatives of a row, H dimensions of the backbone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TokenIds = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PooledText:
    """A text that a frozen backbone has read.

    Attributes:
        key: a hash of the text and its prompt.
        vector: (H,) float32.
    """

    key: int
    vector: NDArray[np.float32]


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


def pool_batch(texts: Sequence[PooledText]) -> tuple[TextBatch, NDArray[np.int64]]:
    """What `pack` gives, of texts whose pooled vectors are known: each distinct text once, by their keys."""
    all_keys = np.array([text.key for text in texts], dtype=np.int64)
    keys, first, places = np.unique(all_keys, return_index=True, return_inverse=True)
    empty = torch.empty(0, dtype=torch.int64)
    batch = TextBatch(
        input_ids=empty,
        position_ids=empty,
        lengths=(),
        text_keys=torch.from_numpy(keys),
        index={},
        pooled=torch.from_numpy(np.stack([texts[i].vector for i in first])),
    )
    return batch, places


def pack(texts: Sequence[TokenIds]) -> tuple[TextBatch, NDArray[np.int64]]:
    """Lay texts end to end, shortest first, each distinct text once.

    Args:
        texts: token ids of each text, with special tokens; none of them empty.

    Returns:
        The batch, its index still without roles, and an int64 array with the place of texts[i] in the batch.
    """
    first_seen: dict[bytes, int] = {}
    distinct: list[TokenIds] = []
    number = np.empty(len(texts), dtype=np.int64)
    for i, ids in enumerate(texts):
        content = ids.tobytes()
        if content not in first_seen:
            first_seen[content] = len(distinct)
            distinct.append(ids)
        number[i] = first_seen[content]

    lengths = np.fromiter((len(ids) for ids in distinct), dtype=np.int64, count=len(distinct))
    order = np.argsort(lengths, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    sorted_lengths = lengths[order]
    starts = np.cumsum(sorted_lengths) - sorted_lengths
    positions = np.arange(sorted_lengths.sum()) - np.repeat(starts, sorted_lengths)
    keys = np.array([text_key(content) for content in first_seen], dtype=np.int64)[order]
    batch = TextBatch(
        input_ids=torch.from_numpy(np.concatenate([distinct[i] for i in order]).astype(np.int64)),
        position_ids=torch.from_numpy(positions),
        lengths=tuple(sorted_lengths.tolist()),
        text_keys=torch.from_numpy(keys),
        index={},
    )
    return batch, place[number]


def text_key(content: bytes) -> int:
    """What stands for a text: 64 bits that are the same in every process."""
    # Python's own hash() is salted per process, and keys are compared across processes.
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little", signed=True)
