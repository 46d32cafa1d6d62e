"""Rows of token ids -> a packed TextBatch. The one place where roles become tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from sbert_train.data.batch import PooledText, TextBatch, pack, pool_batch

Row = Mapping[str, Any]

TARGETS = ("score", "label")  # numbers that a row may carry beside its texts
OBJECTIVE = "objective"  # the number of the objective that the row is for
REFERENCE = "reference"  # role -> (R,), or (K, R) for `negative`: vectors of its texts by another encoder
NOT_TEXTS = (*TARGETS, OBJECTIVE, REFERENCE)


def collate(rows: Sequence[Row]) -> TextBatch:
    """Pack the texts of some rows; a text that occurs twice is encoded once.

    Args:
        rows: B rows with the same roles: int32 token ids for a text role (or a PooledText), a list of K of them for
            `negative`, a number or an array of numbers for `score`, an int for `label`; OBJECTIVE and REFERENCE where
            `MixedRows` puts them.

    >>> cat, dog, bird = (np.array(ids, dtype=np.int32) for ids in ([2, 7, 8, 3], [2, 9, 3], [2, 5, 6, 4, 3]))
    >>> batch = collate([{"anchor": cat, "positive": dog}, {"anchor": bird, "positive": cat}])
    >>> batch.input_ids.tolist()
    [2, 9, 3, 2, 7, 8, 3, 2, 5, 6, 4, 3]
    >>> batch.position_ids.tolist()
    [0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]
    >>> batch.lengths
    (3, 4, 5)
    >>> {role: texts.tolist() for role, texts in batch.index.items()}
    {'anchor': [1, 2], 'positive': [0, 1]}
    """
    roles = [role for role in rows[0] if role not in NOT_TEXTS]
    texts: list[Any] = []
    shapes: dict[str, tuple[int, ...]] = {}
    for role in roles:
        column = [row[role] for row in rows]
        if role == "negative":
            shapes[role] = (len(rows), len(column[0]))
            texts.extend(ids for negatives in column for ids in negatives)
        else:
            shapes[role] = (len(rows),)
            texts.extend(column)

    batch, places = pool_batch(texts) if isinstance(texts[0], PooledText) else pack(texts)
    index, start = {}, 0
    for role, shape in shapes.items():
        count = int(np.prod(shape))
        index[role] = torch.from_numpy(places[start : start + count].reshape(shape))
        start += count
    return replace(
        batch,
        index=index,
        labels=_labels(rows),
        objective=rows[0].get(OBJECTIVE, 0),
        reference={
            role: torch.from_numpy(np.stack([row[REFERENCE][role] for row in rows]))
            for role in rows[0].get(REFERENCE, ())
        },
    )


def _labels(rows: Sequence[Row]) -> torch.Tensor | None:
    if "score" in rows[0]:
        return torch.from_numpy(np.array([row["score"] for row in rows], dtype=np.float32))
    if "label" in rows[0]:
        return torch.tensor([row["label"] for row in rows], dtype=torch.int64)
    return None
