"""Rows of token ids become one packed batch."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sbert_train.data.batch import pack
from sbert_train.data.collator import collate
from sbert_train.data.columns import Columns, PooledTexts
from sbert_train.data.keys import hash_texts

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


def pooled(keys: object) -> PooledTexts:
    """Texts whose vectors are (key, 1)."""
    found = np.array(keys)
    return PooledTexts(found, np.stack([found, np.ones_like(found)], axis=-1).astype(np.float32))


def test_pooled_texts_become_the_vectors_of_distinct_texts() -> None:
    cat, dog, bird = 7, 3, 5
    texts = {"anchor": pooled([cat, dog]), "negative": pooled([[dog, cat], [bird, bird]])}
    batch = collate(Columns(rows=2, pooled=texts))
    assert batch.pooled is not None
    assert batch.pooled.tolist() == [[3, 1], [5, 1], [7, 1]]
    assert batch.index["anchor"].tolist() == [2, 0]
    assert batch.index["negative"].tolist() == [[0, 2], [1, 1]]
    assert len(batch.input_ids) == 0 and len(set(batch.text_keys.tolist())) == 3


def test_a_row_may_have_several_scores_an_objective_and_reference_vectors() -> None:
    rows = [{**row(sentence1=[1 + i]), "score": np.array([0.5, i])} for i in range(2)]
    batch = collate(rows)
    assert batch.labels is not None and batch.labels.tolist() == [[0.5, 0], [0.5, 1]]
    vectors = np.repeat(np.arange(2, dtype=np.float32)[:, None], 3, axis=1)
    tokens = {"sentence1": [np.array([1 + i], np.int32) for i in range(2)]}
    batch = collate(Columns(rows=2, tokens=tokens, objective=4, reference={"sentence1": vectors}))
    assert batch.labels is None
    assert batch.objective == 4
    assert batch.reference["sentence1"].tolist() == [[0, 0, 0], [1, 1, 1]]


def test_moving_a_batch_moves_all_its_tensors() -> None:
    batch = collate([{**row(sentence1=[1], sentence2=[2]), "score": 0.25}]).to("meta")
    tensors = [batch.input_ids, batch.position_ids, batch.text_keys, *batch.index.values(), batch.labels]
    assert {tensor.device.type for tensor in tensors if tensor is not None} == {"meta"}
    assert batch.lengths == (1, 1)
    reference = {"anchor": np.zeros((1, 2), np.float32)}
    other = collate(Columns(rows=1, pooled={"anchor": pooled([0])}, reference=reference)).to("meta")
    assert other.pooled is not None
    assert (other.pooled.device.type, other.reference["anchor"].device.type) == ("meta", "meta")


def keys_of(texts: list[list[int]]) -> list[int]:
    ids = np.array([token for text in texts for token in text], dtype=np.int32)
    return [int(key) for key in hash_texts(ids, np.array([len(text) for text in texts]))]


def test_the_key_of_a_text_is_the_same_wherever_it_stands_and_on_every_machine() -> None:
    alone, beside = keys_of([[101, 2023, 102]]), keys_of([[7], [], [101, 2023, 102], []])
    assert beside[2] == alone[0]
    mask, key = 2**64 - 1, 0  # by hand, in Python's own integers
    for place, token in enumerate([101, 2023, 102]):
        mixed = ((place << 32) + token + 0x9E3779B97F4A7C15) & mask
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & mask
        key = (key + (mixed ^ mixed >> 31)) & mask
    assert alone[0] & mask == key


def test_texts_that_differ_in_a_token_their_order_or_their_length_differ_in_their_keys() -> None:
    rng = np.random.default_rng(0)
    texts = {tuple(rng.integers(0, 30, rng.integers(1, 6)).tolist()) for _ in range(20_000)}
    texts |= {text[::-1] for text in texts} | {(*text, 0) for text in texts} | {(0, *text) for text in texts}
    assert len(texts) > 20_000
    assert len(set(keys_of([list(text) for text in texts]))) == len(texts)
