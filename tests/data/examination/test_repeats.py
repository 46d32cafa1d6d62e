"""Repeats are counted as a plain loop over all rows counts them."""

import random

import numpy as np
import pytest

from sbert_train.data.examination.repeats import Repeats, count_repeats
from sbert_train.data.examination.text_keys import normalised, text_keys
from tests.data.examination.sets import rows_of

TEXTS = ["a cat", "A cat.", "a dog", "the dog", "THE DOG"]


def plainly(rows: list[tuple[str, str]], targets: list[float]) -> Repeats:
    texts = [text for row in rows for text in row]
    near = [tuple(map(normalised, row)) for row in rows]
    exact_repeats = sum(row in rows[:i] for i, row in enumerate(rows))
    all_repeats = sum(row in near[:i] for i, row in enumerate(near))
    return Repeats(
        texts=len(texts),
        distinct_texts=len(set(texts)),
        near_texts=len(set(texts)) - len({normalised(text) for text in texts}),
        rows=exact_repeats,
        near_rows=all_repeats - exact_repeats,
        contradicting=sum(
            any(row == other and a != b for other, b in zip(near, targets, strict=True))
            for row, a in zip(near, targets, strict=True)
        ),
    )


@pytest.mark.parametrize("seed", range(8))
def test_they_are_those_of_a_plain_loop(seed: int) -> None:
    draw = random.Random(seed)
    rows = [(draw.choice(TEXTS), draw.choice(TEXTS)) for _ in range(12)]
    targets = [draw.choice([0.0, 1.0]) for _ in rows]
    keys = text_keys(
        rows_of(sentence1=[one for one, _ in rows], sentence2=[other for _, other in rows]),
        ["sentence1", "sentence2"],
    )
    found = count_repeats(keys, np.array(targets))
    assert found == plainly(rows, targets)
    assert found.rows or found.near_rows, "the premise: some row repeats another"


def test_several_scores_of_a_row_contradict_where_one_of_them_does() -> None:
    keys = text_keys(rows_of(anchor=["a", "a", "b", "b"]), ["anchor"])
    assert count_repeats(keys, np.array([[1, 2], [1, 3], [1, 2], [1, 2]])).contradicting == 2


def test_without_scores_and_labels_nothing_contradicts() -> None:
    assert count_repeats(text_keys(rows_of(anchor=["a", "a"]), ["anchor"])).contradicting == 0
