"""Correlations equal scipy's, ranking metrics a plain loop, and what is undefined is an error."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sbert_train.errors import EvaluationError
from sbert_train.evaluation import metrics
from sbert_train.evaluation.metrics import (
    CORRELATION_METRICS,
    CORRELATIONS,
    RANKING_METRICS,
    Array,
    is_constant,
    pair_similarities,
    pearson,
    ranking_values,
    spearman,
)

# --- similarities ---


def test_similarities_of_vectors_at_chosen_angles() -> None:
    u = np.array([[2.0, 0.0], [2.0, 0.0], [3.0, 4.0]])
    v = np.array([[0.0, 1.0], [1.0, math.sqrt(3)], [-3.0, -4.0]])  # 90, 60 and 180 degrees away
    similarities = pair_similarities(u, v)
    assert similarities["cosine"] == pytest.approx([0.0, 0.5, -1.0], abs=1e-7)
    assert similarities["dot"] == pytest.approx([0.0, 2.0, -25.0])
    assert similarities["euclidean"] == pytest.approx([-math.sqrt(5), -2.0, -10.0])
    assert similarities["manhattan"] == pytest.approx([-3.0, -1 - math.sqrt(3), -14.0])


def test_cosine_with_a_zero_vector_is_zero() -> None:
    assert pair_similarities(np.array([[0.0, 0.0], [1.0, 0.0]]), np.ones((2, 2)))["cosine"][0] == 0.0


def test_pairs_of_equal_vectors_tie_in_cosine() -> None:
    vectors = np.random.default_rng(0).normal(size=(500, 384)).astype(np.float32)
    wide = vectors.astype(np.float64)
    assert len(np.unique(metrics.cosine(wide, wide))) > 1  # premise: unrounded, they do not
    assert pair_similarities(vectors, vectors)["cosine"].tolist() == [1.0] * 500


def test_similarities_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    u, v = np.random.default_rng(1).normal(size=(2, 23, 4))
    whole = pair_similarities(u, v)
    monkeypatch.setattr(metrics, "PAIRS_PER_BLOCK", 5)
    parts = pair_similarities(u, v)
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)


def test_embeddings_of_one_vector_only_are_an_error_even_with_float_noise() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 50, 8)) * 1e-8
    u, v = (np.full((2, 50, 8), 0.35) + noise).astype(np.float32)
    assert len(np.unique(metrics.dot(u.astype(float), v.astype(float)))) > 1  # premise: not equal bit for bit
    with pytest.raises(EvaluationError, match=r"embeds all 50 pairs alike.*lower the learning rate"):
        pair_similarities(u, v)


def test_one_side_may_be_a_single_vector() -> None:
    similarities = pair_similarities(np.ones((2, 2)), np.array([[1.0, 0.0], [1.0, 1.0]]))
    assert similarities["cosine"] == pytest.approx([math.sqrt(0.5), 1.0])


def test_small_embeddings_have_not_collapsed() -> None:
    u = np.array([[1e-9, 0.0], [0.0, 1e-9]], dtype=np.float32)
    assert pair_similarities(u, u[[0, 0]])["cosine"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_embeddings_that_are_not_finite_are_an_error(value: float) -> None:
    u = np.eye(3)
    u[1, 2] = value
    with pytest.raises(EvaluationError, match=r"right embeddings: 1 of 3 hold NaN or infinity; .*diverged"):
        pair_similarities(np.eye(3), u)


def test_embeddings_of_unequal_shapes_are_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"found \(3, 3\) and \(2, 2\)"):
        pair_similarities(np.eye(3), np.eye(2))


@pytest.mark.parametrize("shape", [(3,), (0, 4), (2, 3, 4)])
def test_embeddings_that_are_no_matrix_are_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(EvaluationError, match=r"left embeddings: expected .*\(texts, dimensions\)"):
        pair_similarities(np.ones(shape), np.ones(shape))


# --- correlations ---

few_values = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30)


@settings(max_examples=50, deadline=None)
@given(few_values)
def test_correlations_equal_scipy_on_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    if len(set(x)) == 1 or len(set(y)) == 1:
        for correlate in (pearson, spearman):
            with pytest.raises(EvaluationError, match="undefined"):
                correlate(x, y)
    else:
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
        if len(x) > 2:  # scipy's p-value of two pairs divides by zero
            assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), max_size=12))
def test_a_correlation_is_a_number_between_minus_one_and_one_or_an_error(
    pairs: list[tuple[float, float]],
) -> None:
    x, y = np.array(pairs, dtype=float).reshape(-1, 2).T
    for correlate in (pearson, spearman):
        try:
            assert -1.0 <= correlate(x, y) <= 1.0
        except EvaluationError:
            assert len(x) < 2 or not np.isfinite([x, y]).all() or is_constant(x) or is_constant(y)


def test_spearman_by_hand_with_a_tie() -> None:
    # ranks 1.5 1.5 3 4 and 1 2 3 4: covariance 4.5, variances 4.5 and 5
    assert spearman(np.array([5, 5, 7, 9]), np.array([1, 2, 3, 4])) == pytest.approx(4.5 / math.sqrt(4.5 * 5))


@pytest.mark.parametrize("name", CORRELATIONS)
def test_constant_predictions_are_an_error_that_says_what_to_do(name: str) -> None:
    message = f"{name.capitalize()} is undefined: all 3 predictions are 0.5; .*lower the learning rate"
    with pytest.raises(EvaluationError, match=message):
        CORRELATIONS[name](np.full(3, 0.5), np.arange(3))


@pytest.mark.parametrize("name", CORRELATIONS)
def test_predictions_that_are_constant_up_to_rounding_are_an_error(name: str) -> None:
    noisy = 0.5 + np.array([0.0, 1e-16, 2e-16])
    assert len(np.unique(noisy)) > 1  # premise
    with pytest.raises(EvaluationError, match=r"all 3 predictions are 0\.5"):
        CORRELATIONS[name](noisy, np.arange(3))


@pytest.mark.parametrize("name", CORRELATIONS)
def test_constant_gold_scores_are_an_error_that_says_what_to_do(name: str) -> None:
    with pytest.raises(EvaluationError, match="all 3 gold scores are 4; use a set with different scores"):
        CORRELATIONS[name](np.arange(3), np.full(3, 4.0))


@pytest.mark.parametrize("name", CORRELATIONS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_an_error(name: str, value: float) -> None:
    broken = np.array([0.0, value, 1.0])
    with pytest.raises(
        EvaluationError, match="1 of 3 predictions are NaN or infinite; the model has diverged"
    ):
        CORRELATIONS[name](broken, np.arange(3))
    with pytest.raises(EvaluationError, match="1 of 3 gold scores are NaN or infinite; mend or filter"):
        CORRELATIONS[name](np.arange(3), broken)


@pytest.mark.parametrize("name", CORRELATIONS)
@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_pairs_are_an_error(name: str, n: int) -> None:
    with pytest.raises(EvaluationError, match=f"expected at least 2 pairs, found {n}; add pairs"):
        CORRELATIONS[name](np.ones(n), np.ones(n))


def test_unequal_lengths_are_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"found shapes \(3,\) and \(2,\)"):
        pearson(np.arange(3), np.arange(2))


def test_the_metric_names_are_every_correlation_of_every_similarity() -> None:
    assert list(CORRELATION_METRICS) == [
        "pearson_cosine",
        "spearman_cosine",
        "pearson_dot",
        "spearman_dot",
        "pearson_euclidean",
        "spearman_euclidean",
        "pearson_manhattan",
        "spearman_manhattan",
    ]


# --- rankings ---


def plain_loop(hits: list[bool], relevant: int) -> dict[str, float]:
    """The ranking metrics of one query, as their definitions read."""
    found = {k: sum(hits[:k]) for k in (1, 5, 10)}
    ranks = [rank for rank, hit in enumerate(hits, start=1) if hit]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    best_gain = sum(1 / math.log2(rank + 1) for rank in range(1, min(relevant, 10) + 1))
    precision = sum(sum(hits[:rank]) / rank for rank in ranks if rank <= 100)
    return {
        "accuracy@1": float(hits[0]),
        "recall@1": found[1] / relevant,
        "recall@5": found[5] / relevant,
        "recall@10": found[10] / relevant,
        "mrr@10": 1 / ranks[0] if ranks and ranks[0] <= 10 else 0.0,
        "ndcg@10": gain / best_gain,
        "map@100": precision / min(relevant, 100),
    }


@st.composite
def rankings(draw: st.DrawFn) -> tuple[Array, Array]:
    """hits (Q, K) and relevant (Q,), also for corpora smaller than k and relevant texts beyond rank K."""
    queries, ranks = draw(st.integers(1, 5)), draw(st.integers(1, 130))
    density = draw(st.sampled_from([0.02, 0.3, 1.0]))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    hits = generator.random((queries, ranks)) < density
    return hits, np.maximum(hits.sum(axis=1) + generator.integers(0, 3, queries), 1)


@settings(max_examples=50, deadline=None)
@given(rankings())
def test_ranking_metrics_equal_a_plain_loop(ranking: tuple[Array, Array]) -> None:
    hits, relevant = ranking
    values = ranking_values(hits, relevant)
    assert list(values) == list(RANKING_METRICS)
    for query, (row, count) in enumerate(zip(hits.tolist(), relevant.tolist(), strict=True)):
        expected = plain_loop(row, count)
        assert {name: value[query] for name, value in values.items()} == pytest.approx(expected)


def test_ranking_metrics_by_hand() -> None:
    hits = np.zeros((1, 12), dtype=bool)
    hits[0, [1, 3, 11]] = True  # ranks 2, 4 and 12 of 4 relevant texts
    values = {name: value[0] for name, value in ranking_values(hits, np.array([4])).items()}
    discount = {rank: 1 / math.log2(rank + 1) for rank in range(1, 5)}
    assert values == pytest.approx(
        {
            "accuracy@1": 0.0,
            "recall@1": 0.0,
            "recall@5": 0.5,
            "recall@10": 0.5,
            "mrr@10": 0.5,
            "ndcg@10": (discount[2] + discount[4]) / sum(discount.values()),
            "map@100": (1 / 2 + 2 / 4 + 3 / 12) / 4,
        }
    )


def test_a_perfect_ranking_scores_one_in_all_but_recall_below_the_number_of_relevant_texts() -> None:
    values = ranking_values(np.arange(20)[None] < 2, np.array([2]))
    assert values.pop("recall@1").tolist() == [0.5]
    assert {name: value[0] for name, value in values.items()} == pytest.approx(dict.fromkeys(values, 1.0))
