"""A metric from counts equals the metric of the drawn examples laid out one by one."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    homogeneity_completeness_v_measure,
)

from sbert_train.evaluation.metrics import CORRELATION_METRICS, RANKING_METRICS, SIMILARITIES, Array
from sbert_train.evaluation.samples import BinarySample, ClassSample, ClusterSample, PairSample, QuerySample
from sbert_train.evaluation.thresholds import THRESHOLD_METRICS
from tests.evaluation.plainly import best_by_threshold


def pair_sample(seed: int, n: int, distinct: int) -> PairSample:
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, distinct, n).astype(float)
    return PairSample(gold, {name: generator.integers(0, distinct, n) / 7 for name in SIMILARITIES})


def drawn(seed: int, resamples: int, n: int) -> tuple[Array, Array]:
    """Indices (R, N) and their counts (R, N)."""
    indices = np.random.default_rng(seed).integers(0, n, (resamples, n))
    return indices, np.stack([np.bincount(row, minlength=n) for row in indices]).astype(float)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), distinct=st.integers(1, 40))
def test_correlations_from_counts_equal_scipy_on_the_drawn_pairs(seed: int, n: int, distinct: int) -> None:
    sample = pair_sample(seed, n, distinct)
    indices, counts = drawn(seed, 6, n)
    metrics = list(CORRELATION_METRICS)
    found = sample.resampled(metrics, counts)
    scipy = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}
    for row, index in enumerate(indices):
        for column, metric in enumerate(metrics):
            correlation, similarity = CORRELATION_METRICS[metric]
            x, y = sample.similarities[similarity][index], sample.gold[index]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # scipy warns of the constant resamples, and gives NaN
                expected = scipy[correlation](x, y).statistic
            assert found[row, column] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_a_resample_of_a_single_value_is_undefined_even_where_its_mean_is_rounded() -> None:
    gold = np.array([0.1] * 100 + [0.9])
    indices = np.random.default_rng(0).integers(0, 100, (50, 101))  # never the last
    counts = np.stack([np.bincount(row, minlength=101) for row in indices]).astype(float)
    assert (counts @ gold / 101 != 0.1).any()  # premise: a mean of equal values need not be that value
    sample = PairSample(gold, {name: np.arange(101.0) for name in SIMILARITIES})
    assert np.isnan(sample.resampled(list(CORRELATION_METRICS), counts)).all()


def test_a_large_offset_does_not_harm_the_correlation() -> None:
    generator = np.random.default_rng(3)
    x, y = generator.normal(size=(2, 50))
    indices, counts = drawn(3, 4, 50)
    sample = PairSample(y + 1e6, dict.fromkeys(SIMILARITIES, x + 1e6))
    expected = [stats.pearsonr(x[index], y[index]).statistic for index in indices]
    assert sample.resampled(["pearson_cosine"], counts)[:, 0] == pytest.approx(expected, abs=1e-8)


def test_means_from_counts_equal_the_means_of_the_drawn_queries() -> None:
    values = {name: np.random.default_rng(row).random(20) for row, name in enumerate(RANKING_METRICS)}
    indices, counts = drawn(0, 5, 20)
    found = QuerySample(values).resampled(list(values), counts)
    expected = np.stack([values[name][indices].mean(axis=1) for name in values], axis=1)
    assert found == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), distinct=st.integers(1, 20))
def test_threshold_figures_from_counts_equal_those_of_the_drawn_pairs(
    seed: int, n: int, distinct: int
) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, n)
    similarities = {name: generator.integers(0, distinct, n) / 7 for name in SIMILARITIES}
    indices, counts = drawn(seed, 6, n)
    names = list(THRESHOLD_METRICS)
    found = BinarySample(labels, similarities).resampled(names, counts)
    for row, index in enumerate(indices):
        for column, metric in enumerate(names):
            figure, similarity = THRESHOLD_METRICS[metric]
            scores, gold = similarities[similarity][index], labels[index]
            if figure == "accuracy":
                expected = best_by_threshold(scores, gold).accuracy
            elif not gold.any():
                expected = np.nan
            elif figure == "f1":
                expected = best_by_threshold(scores, gold).f1
            else:
                expected = average_precision_score(gold, scores)
            assert found[row, column] == pytest.approx(expected, nan_ok=True)


def test_metrics_come_in_the_order_in_which_they_are_asked_for() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 30)
    sample = BinarySample(labels, {name: generator.random(30) for name in SIMILARITIES})
    names, once = list(THRESHOLD_METRICS), np.ones((1, 30))
    figures = sample.resampled(names, once)[0]
    assert len(set(figures)) > 6  # premise: they differ
    for order in (names[::-1], sorted(names), ["f1_dot"]):
        expected = [figures[names.index(name)] for name in order]
        assert sample.resampled(order, once)[0].tolist() == expected


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), classes=st.integers(2, 5))
def test_class_figures_from_counts_equal_sklearn_on_the_drawn_pairs(seed: int, n: int, classes: int) -> None:
    gold, predicted = np.random.default_rng(seed).integers(0, classes, (2, n))
    indices, counts = drawn(seed, 6, n)
    found = ClassSample(gold, predicted).resampled(["macro_f1", "accuracy"], counts)
    for row, index in enumerate(indices):
        macro = f1_score(gold[index], predicted[index], average="macro", zero_division=0)
        assert found[row] == pytest.approx([macro, accuracy_score(gold[index], predicted[index])])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 14), groups=st.integers(1, 5))
def test_cluster_figures_from_counts_equal_sklearn_on_the_drawn_texts(seed: int, n: int, groups: int) -> None:
    labels, clusters = np.random.default_rng(seed).integers(0, groups, (2, n))
    indices, counts = drawn(seed, 6, n)
    names = ["homogeneity", "completeness", "v_measure"]
    found = ClusterSample(labels, clusters).resampled(names, counts)
    for row, index in enumerate(indices):
        expected = homogeneity_completeness_v_measure(labels[index], clusters[index])
        assert found[row] == pytest.approx(expected, abs=1e-9)
