"""Texts are encoded once and keep their places; what encode gives back is checked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.encoding import encode_distinct


def test_equal_texts_are_encoded_once_and_every_text_keeps_its_place(
    lookup: Callable[[Mapping[str, Sequence[float]]], Any],
) -> None:
    encode = lookup({"a": (1, 0), "b": (0, 1)})
    embeddings = encode_distinct(encode, ["b", "a", "b", "b"], "anchor")
    assert embeddings.tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    assert encode.calls == [(["b", "a"], "anchor")]


def test_a_missing_vector_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="role anchor: expected 2 vectors, one for each text, found 1"):
        encode_distinct(lambda texts, role: np.ones((1, 3), dtype=np.float32), ["a", "b"], "anchor")


def test_a_flat_array_is_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"embeddings of role anchor: expected .* found shape \(2,\)"):
        encode_distinct(lambda texts, role: np.ones(2, dtype=np.float32), ["a", "b"], "anchor")


def test_embeddings_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="embeddings of role anchor: 2 of 2 hold NaN or infinity"):
        encode_distinct(lambda texts, role: np.full((2, 3), np.nan, dtype=np.float32), ["a", "b"], "anchor")
