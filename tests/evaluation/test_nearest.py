"""The search is exact, breaks ties by position, and does not depend on its blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbert_train.evaluation.nearest import nearest


def test_the_nearest_are_those_at_the_smallest_angles() -> None:
    degrees = np.deg2rad([90, 10, 45, 0, 180])
    corpus = np.stack([np.cos(degrees), np.sin(degrees)], axis=1) * 7
    where, cosines = nearest(np.array([[3.0, 0.0]]), corpus, 4)
    assert where.tolist() == [[3, 1, 2, 0]]
    assert cosines[0] == pytest.approx(np.cos(degrees[[3, 1, 2, 0]]), abs=1e-6)


def test_a_corpus_smaller_than_k_is_ranked_whole() -> None:
    where, cosines = nearest(np.eye(3), np.eye(3)[:2], 10)
    assert where.shape == cosines.shape == (3, 2)


def test_a_zero_vector_has_cosine_zero() -> None:
    where, cosines = nearest(np.array([[1.0, 0.0]]), np.array([[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]), 3)
    assert where.tolist() == [[2, 0, 1]]
    assert cosines.tolist() == [[1.0, 0.0, -1.0]]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    k=st.integers(1, 12),
    queries_per_block=st.integers(1, 7),
    corpus_per_block=st.integers(1, 40),
)
def test_ties_go_to_the_first_of_the_corpus_whatever_the_blocks(
    seed: int, k: int, queries_per_block: int, corpus_per_block: int
) -> None:
    generator = np.random.default_rng(seed)
    # 37 texts share 5 embeddings, so that there are ties within blocks, between them and at rank k.
    shared, queries = generator.normal(size=(5, 16)), generator.normal(size=(6, 16))
    corpus = shared[generator.integers(0, 5, 37)]
    cosines = queries @ corpus.T
    cosines /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(corpus, axis=1)
    expected = [
        sorted(range(37), key=lambda text, row=row: (-np.round(row[text], 10), text))[:k]  # type: ignore[misc]
        for row in cosines
    ]
    found, _ = nearest(
        queries.astype(np.float32),
        corpus.astype(np.float32),
        k,
        queries_per_block=queries_per_block,
        corpus_per_block=corpus_per_block,
    )
    assert found.tolist() == expected
