"""Rows of token ids -> a packed TextBatch. The one place where roles become tensors."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from sbert_train.data.batch import TextBatch, pack, pool_batch
from sbert_train.data.columns import Columns, Row, columns_of


def collate(rows: Columns | Sequence[Row]) -> TextBatch:
    """Pack the texts of some rows; a text that occurs twice is encoded once.

    Args:
        rows: B rows by column, as `MixedRows` reads them; or one by one, with the same roles: int32 token ids for a
            text role, a list of K of them for `negative`, a number or an array of numbers for `score`, an int for
            `label`.

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
    columns = rows if isinstance(rows, Columns) else columns_of(rows)
    roles = [*columns.pooled, *columns.tokens]
    if columns.pooled:
        batch, places = pool_batch(
            np.concatenate([texts.keys.ravel() for texts in columns.pooled.values()]),
            np.concatenate(
                [texts.vectors.reshape(-1, texts.vectors.shape[-1]) for texts in columns.pooled.values()]
            ),
        )
    else:
        batch, places = pack([ids for texts in columns.tokens.values() for ids in texts])
    index, start = {}, 0
    for role in roles:
        shape = columns.shape_of(role)
        stop = start + int(np.prod(shape))
        index[role] = torch.from_numpy(places[start:stop].reshape(shape))
        start = stop
    return replace(
        batch,
        index=index,
        labels=None if columns.labels is None else torch.from_numpy(columns.labels),
        objective=columns.objective,
        reference={role: torch.from_numpy(vectors) for role, vectors in columns.reference.items()},
    )
