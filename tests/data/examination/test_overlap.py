"""What an eval set has in common with a training set."""

from typing import Any

import pytest

from sbert_train.data.examination.overlap import Overlap, overlap
from sbert_train.data.examination.text_keys import TextKeys, text_keys
from tests.data.examination.sets import rows_of

TRAIN = {"anchor": ["A cat.", "a dog", "a fish"], "positive": ["the cat", "the dog", "the fish"]}


def keys(columns: dict[str, Any]) -> TextKeys:
    return text_keys(rows_of(**columns), [role for role in columns if role not in ("score", "label")])


def test_pairs_and_texts_are_found_but_for_case_and_punctuation_in_other_roles_and_the_other_order() -> None:
    evaluated = {"sentence1": ["THE CAT", "a dog", "a bird"], "sentence2": ["a cat!", "the cat", "a cow"]}
    assert overlap("train", keys(TRAIN), keys(evaluated)) == Overlap("train", 3, 1, 5, 3)
    # 5 texts: the cat (twice), a cat, a dog, a bird, a cow; 3 of them in training, and one pair


def test_a_pair_with_a_negative_counts_as_one() -> None:
    train = {**TRAIN, "negative": [["a mat", "a tree"], ["x", "y"], ["v", "w"]]}
    evaluated = {"sentence1": ["a cat"], "sentence2": ["A tree"]}
    assert overlap("train", keys(train), keys(evaluated)).seen_rows == 1
    assert overlap("train", keys(TRAIN), keys(evaluated)).seen_rows == 0


def test_one_of_several_negatives_is_enough_and_counts_its_row_once() -> None:
    evaluated = {"anchor": ["a cat"], "positive": ["the cat"], "negative": [["a cat", "the cat"]]}
    found = overlap("train", keys(TRAIN), keys(evaluated))
    assert (found.rows, found.seen_rows) == (1, 1)


@pytest.mark.parametrize("train", [TRAIN, {"sentence1": ["a cat"], "label": [1]}])
def test_rows_of_single_texts_are_seen_where_their_text_is(train: dict[str, list[Any]]) -> None:
    evaluated = {"sentence1": ["a cat", "a bird"], "label": [0, 1]}
    found = overlap("train", keys(train), keys(evaluated))
    assert (found.rows, found.seen_rows, found.texts, found.seen_texts) == (2, 1, 2, 1)


def test_two_texts_of_training_that_never_stood_together_are_no_pair_of_it() -> None:
    evaluated = {"anchor": ["a cat"], "positive": ["the dog"]}
    found = overlap("train", keys(TRAIN), keys(evaluated))
    assert (found.seen_rows, found.seen_texts) == (0, 2)
