"""What a model would be judged by that it has been trained on: texts and pairs that stand in both sets.

R rows, K texts of a role in each row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sbert_train.data.examination.text_keys import Keys, TextKeys, among, pair_keys

_SIDES = (("anchor", "positive"), ("anchor", "negative"), ("sentence1", "sentence2"))


@dataclass(frozen=True)
class Overlap:
    """Of an eval set with a training set, but for case, spacing and punctuation.

    Attributes:
        train: the name of the training set.
        rows: rows of the eval set.
        seen_rows: of which a pair (where they have single texts: the text) is one of the training set's, in whichever
            roles and order.
        texts: different texts of the eval set.
        seen_texts: of which the training set has.
    """

    train: str
    rows: int
    seen_rows: int
    texts: int
    seen_texts: int


def overlap(name: str, train: TextKeys, evaluated: TextKeys) -> Overlap:
    """How much of an eval set stands in the training set of that name."""
    trained, texts = _texts(train.near), np.unique(_texts(evaluated.near))
    pairs = _pairs(evaluated.near)
    # Rows of single texts are in training where their text is, whatever it stands beside there.
    seen = among(pairs, _pairs(train.near) if _has_pairs(evaluated.near) else trained)
    return Overlap(
        train=name,
        rows=len(pairs),
        seen_rows=int(seen.any(axis=1).sum()),
        texts=len(texts),
        seen_texts=int(among(texts, trained).sum()),
    )


def _texts(keys: Mapping[str, Keys]) -> Keys:
    return np.concatenate([column.ravel() for column in keys.values()])


def _has_pairs(keys: Mapping[str, Keys]) -> bool:
    return any(one in keys and other in keys for one, other in _SIDES)


def _pairs(keys: Mapping[str, Keys]) -> Keys:
    """(R, pairs of a row): the pairs of texts that a row compares, or its texts where it compares none."""
    if not _has_pairs(keys):
        return np.concatenate(list(keys.values()), axis=1)
    found = [pair_keys(keys[one], keys[other]) for one, other in _SIDES if one in keys and other in keys]
    return np.concatenate(found, axis=1)
