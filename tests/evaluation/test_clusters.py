"""Agreement of clusters with labels equals scikit-learn's, also where one of the two is a single group."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import homogeneity_completeness_v_measure

from sbert_train.evaluation.clusters import Agreement, agreement
from sbert_train.evaluation.metrics import Array


def figures(found: Agreement) -> list[float]:
    return [float(figure[0]) for figure in (found.homogeneity, found.completeness, found.v_measure)]


def on_the_texts(labels: Array, clusters: Array) -> list[float]:
    return figures(agreement(labels, clusters, np.ones((1, len(labels)))))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 30), labels=st.integers(1, 6), clusters=st.integers(1, 6)
)
def test_agreement_equals_sklearn(seed: int, n: int, labels: int, clusters: int) -> None:
    generator = np.random.default_rng(seed)
    gold, found = generator.integers(0, labels, n), generator.integers(0, clusters, n)
    expected = homogeneity_completeness_v_measure(gold, found)
    assert on_the_texts(gold, found) == pytest.approx(expected, abs=1e-9)


def test_clusters_that_divide_a_label_are_homogeneous_and_not_complete() -> None:
    homogeneity, completeness, v_measure = on_the_texts(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]))
    assert homogeneity == pytest.approx(1.0)
    assert completeness == pytest.approx(np.log(2) / (1.5 * np.log(2)))  # I = log 2, H(clusters) = 1.5 log 2
    assert v_measure == pytest.approx(2 * completeness / (1 + completeness))


def test_clusters_that_mix_labels_evenly_share_nothing_with_them() -> None:
    assert on_the_texts(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])) == pytest.approx([0.0, 0.0, 0.0])


def test_a_single_group_has_no_entropy_however_its_texts_are_counted() -> None:
    counts = np.array([[3.0, 0.0, 7.0, 0.0], [1.0, 5.0, 0.0, 4.0]])
    found = agreement(np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1]), counts)
    assert found.homogeneity == pytest.approx([1.0, 1.0])
    assert found.completeness == pytest.approx([1.0, 1.0])
