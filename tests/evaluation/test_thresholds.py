"""Threshold figures equal scikit-learn's and a plain search; a threshold does what its figures say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, precision_score, recall_score

from sbert_train.evaluation.metrics import Array
from sbert_train.evaluation.thresholds import (
    Cuts,
    at_best_accuracy,
    at_best_f1,
    average_precision,
    best_accuracy,
    best_f1,
    cut,
)
from tests.evaluation.plainly import best_by_threshold


def cuts_of(scores: Array, labels: Array) -> Cuts:
    return cut(scores.astype(float), labels, np.ones((1, len(labels))))


@st.composite
def scored(draw: st.DrawFn) -> tuple[Array, Array]:
    """Scores with many ties, as float32 holds them, and labels of both kinds."""
    n = draw(st.integers(2, 25))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    scores = generator.integers(0, draw(st.sampled_from([1, 3, 100])), n).astype(np.float32) / 7
    labels = generator.integers(0, 2, n)
    labels[:2] = 0, 1
    return scores, generator.permutation(labels)


@settings(max_examples=80, deadline=None)
@given(scored())
def test_figures_equal_sklearn_and_a_plain_search_also_on_ties(given_pairs: tuple[Array, Array]) -> None:
    scores, labels = given_pairs
    cuts, plain = cuts_of(scores, labels), best_by_threshold(scores, labels)
    assert average_precision(cuts)[0] == pytest.approx(average_precision_score(labels, scores))
    assert best_f1(cuts)[0] == pytest.approx(plain.f1)
    assert best_accuracy(cuts)[0] == pytest.approx(plain.accuracy)


@settings(max_examples=80, deadline=None)
@given(scored())
def test_the_thresholds_reach_the_figures_and_are_those_of_sentence_transformers(
    given_pairs: tuple[Array, Array],
) -> None:
    scores, labels = given_pairs
    cuts = cuts_of(scores, labels)
    found, threshold = at_best_f1(cuts), at_best_accuracy(cuts)["threshold"]
    called = scores >= found["threshold"]
    assert f1_score(labels, called) == pytest.approx(best_f1(cuts)[0])
    assert found["precision"] == pytest.approx(precision_score(labels, called))
    assert found["recall"] == pytest.approx(recall_score(labels, called))
    assert accuracy_score(labels, scores >= threshold) == pytest.approx(best_accuracy(cuts)[0])
    theirs = BinaryClassificationEvaluator.find_best_acc_and_threshold(scores, labels, True)
    assert threshold == pytest.approx(float(theirs[1]))


def test_a_threshold_lies_halfway_to_the_next_similarity() -> None:
    cuts = cuts_of(np.array([0.9, 0.7, 0.3, 0.1]), np.array([1, 1, 0, 0]))
    assert at_best_f1(cuts) == {"threshold": 0.5, "precision": 1.0, "recall": 1.0}
    assert at_best_accuracy(cuts) == {"threshold": 0.5}


def test_where_no_threshold_helps_the_best_accuracy_calls_no_pair_similar() -> None:
    scores, labels = np.array([0.9, 0.5, 0.2], dtype=np.float32), np.array([0, 0, 1])
    cuts = cuts_of(scores, labels)
    assert best_accuracy(cuts)[0] == pytest.approx(2 / 3)
    assert not (scores >= at_best_accuracy(cuts)["threshold"]).any()
    assert best_f1(cuts)[0] == pytest.approx(1 / 2)  # all are called similar: precision 1/3, recall 1


def test_the_lowest_similarity_is_a_threshold_itself() -> None:
    cuts = cuts_of(np.array([0.8, 0.6]), np.array([0, 1]))
    assert at_best_f1(cuts) == {"threshold": 0.6, "precision": 0.5, "recall": 1.0}


def test_pairs_of_one_similarity_are_called_alike() -> None:
    cuts = cuts_of(np.array([0.5, 0.5, 0.5, 0.5]), np.array([1, 0, 0, 0]))
    assert cuts.similarities.tolist() == [0.5]
    assert (average_precision(cuts)[0], best_f1(cuts)[0], best_accuracy(cuts)[0]) == (0.25, 0.4, 0.75)


def test_without_positives_only_the_accuracy_is_defined() -> None:
    cuts = cut(np.array([0.5, 0.1]), np.array([1, 0]), np.array([[0.0, 2.0], [2.0, 0.0]]))
    assert np.isnan(average_precision(cuts)).tolist() == np.isnan(best_f1(cuts)).tolist() == [True, False]
    assert best_accuracy(cuts).tolist() == [1.0, 1.0]
