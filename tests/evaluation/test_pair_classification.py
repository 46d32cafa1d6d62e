"""The pair_classification task: figures, their thresholds, resampling, and sets it cannot judge by."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.bootstrap import resampled_metrics
from sbert_train.evaluation.metrics import SIMILARITIES
from sbert_train.evaluation.pair_classification import PairClassificationTask
from sbert_train.evaluation.samples import BinarySample
from sbert_train.evaluation.thresholds import THRESHOLD_METRICS

Angles = Callable[[Mapping[str, float]], Any]
PAIRS = {"sentence1": ["a", "a", "b", "a"], "sentence2": ["b", "c", "c", "d"], "label": [1, 0, 1, 0]}
ANGLES = {"a": 0, "b": 60, "c": 40, "d": 90}  # pairs at 60, 40, 20 and 90 degrees


def test_pairs_are_told_apart_by_their_angle(at_angles: Angles) -> None:
    result = PairClassificationTask("tiny", Dataset.from_dict(PAIRS)).evaluate(at_angles(ANGLES))
    assert list(result.metrics) == list(THRESHOLD_METRICS)
    # by cosine: label 1, 0, 1, 0
    for similarity in SIMILARITIES:  # of unit vectors, all four rank alike
        assert result.metrics[f"ap_{similarity}"] == pytest.approx((1 + 2 / 3) / 2)
        assert result.metrics[f"f1_{similarity}"] == pytest.approx(2 * 2 / (3 + 2))
        assert result.metrics[f"accuracy_{similarity}"] == pytest.approx(3 / 4)
    assert result.primary == result.metrics["ap_cosine"]
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "pair_classification", 4, "pairs")
    assert result.details == {"pairs": 4, "positives": 2}


def test_its_decisions_are_the_thresholds_of_the_best_f1_and_accuracy(at_angles: Angles) -> None:
    result = PairClassificationTask("tiny", Dataset.from_dict(PAIRS)).evaluate(at_angles(ANGLES))
    names = [f"{figure}_{similarity}" for similarity in SIMILARITIES for figure in ("f1", "accuracy")]
    assert list(result.decisions) == names
    cosines = np.cos(np.deg2rad([20, 40, 60, 90]))
    assert result.decisions["f1_cosine"] == pytest.approx(
        {"threshold": cosines[2:].mean(), "precision": 2 / 3, "recall": 1.0}, abs=1e-6
    )
    assert result.decisions["accuracy_cosine"] == pytest.approx({"threshold": cosines[:2].mean()}, abs=1e-6)
    assert (
        result.decisions["f1_euclidean"]["threshold"] < 0
    )  # on the scale of the similarity: negated distance


def test_each_side_is_encoded_in_its_role_and_texts_only_once(at_angles: Angles) -> None:
    encode = at_angles(ANGLES)
    PairClassificationTask("tiny", Dataset.from_dict(PAIRS)).evaluate(encode)
    assert encode.calls == [(["a", "b"], "sentence1"), (["b", "c", "d"], "sentence2")]


def test_the_sample_gives_the_figures_again_when_every_pair_is_drawn_once(at_angles: Angles) -> None:
    result = PairClassificationTask("tiny", Dataset.from_dict(PAIRS)).evaluate(at_angles(ANGLES))
    again = result.sample.resampled(list(result.metrics), np.ones((1, 4)))
    assert again[0] == pytest.approx(list(result.metrics.values()))


def test_a_thousand_resamples_of_ten_thousand_pairs_take_a_few_seconds() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 10_000)
    sample = BinarySample(labels, {name: labels + generator.normal(size=10_000) for name in SIMILARITIES})
    start = time.perf_counter()
    resampled_metrics([sample], list(THRESHOLD_METRICS), resamples=1000)
    assert time.perf_counter() - start < 20, "far above what it takes, far below a loop over resamples"


def test_other_labels_change_the_fingerprint() -> None:
    other = {**PAIRS, "label": [0, 1, 1, 0]}
    prints = [
        PairClassificationTask("x", Dataset.from_dict(rows)).fingerprint for rows in (PAIRS, PAIRS, other)
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_missing_role_is_an_error_naming_the_set() -> None:
    rows = Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "same": [1]})
    with pytest.raises(DataError, match=r"eval set 'dup': task pair_classification needs .* map label under"):
        PairClassificationTask("dup", rows)


def test_a_label_other_than_zero_and_one_is_an_error() -> None:
    with pytest.raises(
        DataError, match=r"eval set 'dup': expected label 1 \(they .*found 2; filter .* task nli"
    ):
        PairClassificationTask("dup", Dataset.from_dict({**PAIRS, "label": [0, 1, 2, 0]}))


@pytest.mark.parametrize("label", [0, 1])
def test_a_set_of_one_class_is_an_error(label: int) -> None:
    with pytest.raises(
        DataError, match=f"eval set 'dup': expected pairs of both kinds, found label {label} in all 4"
    ):
        PairClassificationTask("dup", Dataset.from_dict({**PAIRS, "label": [label] * 4}))


def test_a_collapsed_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    task = PairClassificationTask("dup", Dataset.from_dict(PAIRS))
    with pytest.raises(EvaluationError, match="eval set 'dup': the model embeds all 4 pairs alike"):
        task.evaluate(at_angles(dict.fromkeys("abcd", 10)))


def test_a_diverged_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    task = PairClassificationTask("dup", Dataset.from_dict(PAIRS))
    with pytest.raises(
        EvaluationError, match="eval set 'dup': embeddings of role sentence2: 1 of 3 hold NaN"
    ):
        task.evaluate(at_angles({**ANGLES, "d": np.nan}))
