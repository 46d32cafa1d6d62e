"""Rows of token ids become one packed batch."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sbert_train.data.batch import PooledText, pack
from sbert_train.data.collator import OBJECTIVE, REFERENCE, collate

ids = st.lists(st.integers(0, 9), min_size=1, max_size=6).map(lambda x: np.array(x, dtype=np.int32))


def row(**texts: list[int]) -> dict[str, object]:
    return {role: np.array(text, dtype=np.int32) for role, text in texts.items()}


@given(st.lists(ids, min_size=1, max_size=12))
def test_every_text_is_found_again_at_its_place(texts: list[np.ndarray]) -> None:
    batch, places = pack(texts)
    packed = batch.input_ids.split(list(batch.lengths))
    assert [packed[place].tolist() for place in places] == [text.tolist() for text in texts]


@given(st.lists(ids, min_size=1, max_size=12))
def test_texts_are_distinct_and_sorted_by_length(texts: list[np.ndarray]) -> None:
    batch, _ = pack(texts)
    assert list(batch.lengths) == sorted(batch.lengths)
    assert len(batch.lengths) == len({text.tobytes() for text in texts})
    assert len(set(batch.text_keys.tolist())) == len(batch.lengths)
    starts = [position for position, place in enumerate(batch.position_ids.tolist()) if place == 0]
    assert starts == [sum(batch.lengths[:i]) for i in range(len(batch.lengths))]


def test_the_tensors_of_two_rows_with_a_shared_text() -> None:
    batch = collate(
        [row(anchor=[2, 7, 8, 3], positive=[2, 9, 3]), row(anchor=[2, 5, 6, 4, 3], positive=[2, 7, 8, 3])]
    )
    assert batch.input_ids.tolist() == [2, 9, 3, 2, 7, 8, 3, 2, 5, 6, 4, 3]
    assert batch.position_ids.tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]
    assert batch.lengths == (3, 4, 5)
    assert batch.index["anchor"].tolist() == [1, 2]
    assert batch.index["positive"].tolist() == [0, 1]
    assert batch.labels is None


def test_several_negatives_have_a_place_for_each_row_and_each_negative() -> None:
    rows = [
        {**row(anchor=[1, 2]), "negative": [np.array([3], np.int32), np.array([1, 2], np.int32)]},
        {**row(anchor=[4]), "negative": [np.array([3], np.int32), np.array([5, 6, 7], np.int32)]},
    ]
    batch = collate(rows)
    texts = [text.tolist() for text in batch.input_ids.split(list(batch.lengths))]
    found = [[texts[place] for place in places] for places in batch.index["negative"].tolist()]
    assert found == [[[3], [1, 2]], [[3], [5, 6, 7]]]


def test_scores_are_float_and_labels_are_integers() -> None:
    scores = collate([{**row(sentence1=[1], sentence2=[2]), "score": 0.25}]).labels
    classes = collate([{**row(sentence1=[1], sentence2=[2]), "label": 2}]).labels
    assert scores is not None and scores.dtype == torch.float32 and scores.tolist() == [0.25]
    assert classes is not None and classes.dtype == torch.int64 and classes.tolist() == [2]


def test_equal_texts_have_the_same_key_in_every_batch() -> None:
    one = collate([row(anchor=[1, 2, 3], positive=[4])])
    other = collate([row(anchor=[9], positive=[1, 2, 3])])
    assert one.text_keys[one.index["anchor"]].tolist() == other.text_keys[other.index["positive"]].tolist()


def test_pooled_texts_become_the_vectors_of_distinct_texts() -> None:
    cat, dog, bird = (PooledText(number, np.array([number, 1], np.float32)) for number in (7, 3, 5))
    batch = collate([{"anchor": cat, "negative": [dog, cat]}, {"anchor": dog, "negative": [bird, bird]}])
    assert batch.pooled is not None
    assert batch.pooled.tolist() == [[3, 1], [5, 1], [7, 1]]
    assert batch.index["anchor"].tolist() == [2, 0]
    assert batch.index["negative"].tolist() == [[0, 2], [1, 1]]
    assert len(batch.input_ids) == 0 and len(set(batch.text_keys.tolist())) == 3


def test_a_row_may_have_several_scores_an_objective_and_reference_vectors() -> None:
    vectors = [{"sentence1": np.full(3, i, np.float32)} for i in range(2)]
    rows = [
        {**row(sentence1=[1 + i]), "score": np.array([0.5, i]), OBJECTIVE: 4, REFERENCE: vectors[i]}
        for i in range(2)
    ]
    batch = collate(rows)
    assert batch.labels is not None and batch.labels.tolist() == [[0.5, 0], [0.5, 1]]
    assert batch.objective == 4
    assert batch.reference["sentence1"].tolist() == [[0, 0, 0], [1, 1, 1]]


def test_moving_a_batch_moves_all_its_tensors() -> None:
    batch = collate([{**row(sentence1=[1], sentence2=[2]), "score": 0.25}]).to("meta")
    tensors = [batch.input_ids, batch.position_ids, batch.text_keys, *batch.index.values(), batch.labels]
    assert {tensor.device.type for tensor in tensors if tensor is not None} == {"meta"}
    assert batch.lengths == (1, 1)
    vector = PooledText(0, np.zeros(2, np.float32))
    pooled = collate([{"anchor": vector, REFERENCE: {"anchor": np.zeros(2, np.float32)}}]).to("meta")
    assert pooled.pooled is not None
    assert (pooled.pooled.device.type, pooled.reference["anchor"].device.type) == ("meta", "meta")
