"""Vectors of texts are computed once, kept on disk, and found by row and role."""

from collections.abc import Sequence
from pathlib import Path

import datasets
import numpy as np
import pytest

from sbert_train.data.keys import hash_texts
from sbert_train.data.rows import token_keys
from sbert_train.data.vectors import FILE, Vectors, cached_vectors, row_vectors

ROWS = datasets.Dataset.from_list(
    [
        {"anchor": "cat", "positive": "dog", "negative": ["bird", "cat"], "label": 1},
        {"anchor": "dog", "positive": "dog", "negative": ["fish", "fish"], "label": 0},
    ]
)


class Embedder:
    """Length of the text and of the role's kind, and a note of what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str]] = []

    def __call__(self, texts: Sequence[str], role: str) -> Vectors:
        self.asked.append((list(texts), role))
        return np.array([[len(text), len(role)] for text in texts], dtype=np.float32)


def test_a_text_has_one_vector_for_each_kind_of_role_that_it_stands_in() -> None:
    embed = Embedder()
    vectors = row_vectors(ROWS, {"anchor": "query: ", "positive": "", "negative": ""}, embed)
    assert embed.asked == [(["cat", "dog"], "anchor"), (["dog", "bird", "cat", "fish"], "positive")]
    assert vectors.table.shape == (6, 2)
    both = np.array([0, 1])
    assert vectors.vectors("anchor", both).tolist() == [[3, 6], [3, 6]]
    assert vectors.vectors("negative", both).tolist() == [[[4, 8], [3, 8]], [[4, 8], [4, 8]]]
    assert set(vectors.places) == {"anchor", "positive", "negative"}
    numbers = {role: vectors.places[role].tolist() for role in vectors.places}
    assert numbers == {"anchor": [0, 1], "positive": [2, 2], "negative": [[3, 4], [5, 5]]}


def test_a_projection_is_applied_to_what_is_read() -> None:
    vectors = row_vectors(ROWS, {"anchor": ""}, Embedder()).projected(np.array([[1], [10]], dtype=np.float32))
    assert vectors.vectors("anchor", np.array([1])).tolist() == [[63]]
    assert vectors.table.shape == (2, 2), "what lies on disk stays as it is"


def test_pooled_texts_carry_their_keys() -> None:
    keys = {"anchor": np.array([7, 9]), "negative": np.array([[1, 2], [3, 3]])}
    vectors = row_vectors(ROWS, {"anchor": "", "negative": ""}, Embedder()).with_keys(keys)
    dog = vectors.texts("anchor", np.array([1]))
    assert (dog.keys.tolist(), dog.vectors.tolist()) == ([9], [[3, 6]])
    assert vectors.texts("negative", np.array([0])).keys.tolist() == [[1, 2]]


def test_keys_of_tokenised_texts_are_equal_for_equal_tokens_in_every_process() -> None:
    ids = datasets.List(datasets.Value("int32"))
    features = datasets.Features(
        {"anchor": ids, "negative": datasets.List(ids), "label": datasets.Value("int64")}
    )
    rows = [{"anchor": [2, 5, 3], "negative": [[2, 5, 3], [2, 6, 3]], "label": 1}]
    keys = token_keys(datasets.Dataset.from_list(rows, features=features))
    assert keys["anchor"].tolist() == hash_texts(np.array([2, 5, 3], np.int32), np.array([3])).tolist()
    assert keys["negative"].shape == (1, 2) and set(keys) == {"anchor", "negative"}
    assert keys["negative"][0, 0] == keys["anchor"][0] != keys["negative"][0, 1]


def test_vectors_are_computed_once_and_again_for_something_else(tmp_path: Path) -> None:
    calls = []

    def compute() -> Vectors:
        calls.append(1)
        return np.full((2, 3), len(calls), dtype=np.float32)

    one = cached_vectors(["model", "texts"], compute, tmp_path)
    assert isinstance(one, np.memmap)
    assert cached_vectors(["model", "texts"], compute, tmp_path).tolist() == one.tolist()
    assert len(calls) == 1
    assert cached_vectors(["model", "other texts"], compute, tmp_path)[0, 0] == 2


def test_a_damaged_file_of_vectors_is_made_again(tmp_path: Path) -> None:
    first = np.array(cached_vectors("x", lambda: np.ones((50, 3), dtype=np.float32), tmp_path))
    (file,) = tmp_path.rglob(FILE)
    file.write_bytes(file.read_bytes()[:200])
    again = cached_vectors("x", lambda: np.ones((50, 3), dtype=np.float32), tmp_path)
    assert again.tolist() == first.tolist()


def test_a_failure_leaves_no_entry(tmp_path: Path) -> None:
    def fails() -> Vectors:
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        cached_vectors("x", fails, tmp_path)
    assert list(tmp_path.rglob(FILE)) == []
    assert cached_vectors("x", lambda: np.ones((1, 1), dtype=np.float32), tmp_path).shape == (1, 1)
