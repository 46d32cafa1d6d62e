"""Keys are equal where texts are, as they stand or normalised, and nowhere else."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbert_train.data.examination import text_keys as module
from sbert_train.data.examination.text_keys import (
    among,
    count_distinct,
    normalised,
    pair_keys,
    row_keys,
    text_keys,
)
from tests.data.examination.sets import rows_of

TEXTS = [
    "The cat.",
    "the cat",
    "THE  CAT!",
    "a cat",
    "",
    "?!",
    "!?",
    "Straße",
    "STRASSE",
    "\ufb01ve",
    "five",
    "ca\u0301t",
]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The cat sleeps.", "the  CAT sleeps"),
        ("well-known", "well known"),
        ("snake_case", "Snake Case"),
        ("Straße", "STRASSE"),
        ("\ufb01ve", "Five"),
        ("caf\u00e9", "cafe\u0301"),
        ("\uff21\uff22", "ab"),
    ],
)
def test_case_spacing_punctuation_and_forms_of_a_letter_make_no_difference(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a cat", "the cat"),
        ("acat", "a cat"),
        ("cafe", "caf\u00e9"),
        ("?!", "!?"),
        ("", "?"),
        ("I can", "I can't"),
    ],
)
def test_another_word_is_another_text(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(st.text(max_size=30))
def test_a_normalised_text_is_its_own_normal_form(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


def test_keys_are_equal_where_the_texts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK_ROWS", 5)  # so that equal texts lie in different chunks
    draw = random.Random(0)
    texts = [draw.choice(TEXTS) for _ in range(24)]
    keys = text_keys(rows_of(anchor=texts), ["anchor"])
    exact, near = keys.exact["anchor"], keys.near["anchor"]
    assert exact.shape == near.shape == (24, 1)
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            assert (exact[i] == exact[j]) == (one == other)
            assert (near[i] == near[j]) == (normalised(one) == normalised(other))


def test_the_negatives_of_a_row_stand_side_by_side() -> None:
    rows = rows_of(anchor=["x", "y"], negative=[["a", "b", "c"], ["c", "b", "a"]])
    keys = text_keys(rows, ["anchor", "negative"]).exact["negative"]
    assert keys.shape == (2, 3)
    assert (keys[0] == keys[1][::-1]).all() and len(np.unique(keys)) == 3


def test_rows_that_were_chosen_from_others_have_the_keys_of_their_own_texts() -> None:
    rows = rows_of(anchor=["a", "b", "c", "d"])
    all_keys = text_keys(rows, ["anchor"]).exact["anchor"]
    chosen = text_keys(rows.select([3, 1]), ["anchor"]).exact["anchor"]
    assert (chosen == all_keys[[3, 1]]).all()


def test_a_pair_has_one_key_in_either_order_and_pairs_of_equal_sums_have_different_ones() -> None:
    one, other = np.array([1, 2], np.uint64), np.array([4, 3], np.uint64)
    assert (pair_keys(one, other) == pair_keys(other, one)).all()
    assert pair_keys(one, other)[0] != pair_keys(one, other)[1]


def test_a_row_with_its_texts_swapped_is_another_row() -> None:
    column = np.array([[1], [2]], np.uint64)
    keys = row_keys({"anchor": column, "positive": column[::-1]})
    assert keys[0] != keys[1]


@given(
    st.lists(st.integers(0, 9), min_size=1),
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), min_size=1),
)
def test_what_is_among_others_and_how_many_differ_is_told_as_a_set_tells_it(
    one: list[int], other: list[int]
) -> None:
    keys, known = np.array(one, np.uint64), np.array(other, np.uint64)
    assert among(keys[:, None], known)[:, 0].tolist() == [key in set(other) for key in one]
    assert count_distinct(known) == len(set(other))
