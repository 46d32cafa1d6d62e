"""The nli task: the classifier's figures, and models and sets that it cannot judge by."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sklearn.metrics import f1_score

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation import nli
from sbert_train.evaluation.metrics import Array
from sbert_train.evaluation.nli import NliTask

LookUps = Callable[[Mapping[str, Any]], Any]
PAIRS: Mapping[str, Any] = {
    "sentence1": ["a", "a", "b", "a"],
    "sentence2": ["b", "c", "c", "d"],
    "label": [0, 1, 2, 2],
}
VECTORS = {"a": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0), "c": (0.0, 0.0, 1.0), "d": (1.0, 1.0, 0.0)}


def same_sum(u: Array, v: Array) -> Array:
    """Three classes: the largest entry of u + 2 v says which."""
    logits: Array = u + 2 * v
    return logits


def test_the_class_of_the_largest_logit_is_the_prediction(lookup: LookUps) -> None:
    result = NliTask("tiny", Dataset.from_dict(PAIRS)).evaluate(lookup(VECTORS), same_sum)
    # (1 2 0), (1 0 2), (0 1 2), (3 2 0): classes 1, 2, 2, 0, where 0, 1, 2, 2 are right
    assert result.metrics == pytest.approx({"accuracy": 1 / 4, "macro_f1": (0 + 0 + 2 / 4) / 3})
    assert result.primary == result.metrics["accuracy"]
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "nli", 4, "pairs")
    assert result.details == {"pairs": 4, "classes": 3}


def test_each_side_is_encoded_in_its_role_and_keeps_its_place_in_the_pair(lookup: LookUps) -> None:
    encode, seen = lookup(VECTORS), []

    def classify(u: Array, v: Array) -> Array:
        seen.append((u, v))
        return u

    NliTask("tiny", Dataset.from_dict(PAIRS)).evaluate(encode, classify)
    assert encode.calls == [(["a", "b"], "sentence1"), (["b", "c", "d"], "sentence2")]
    ((u, v),) = seen
    assert u.tolist() == [list(VECTORS[text]) for text in PAIRS["sentence1"]]
    assert v.tolist() == [list(VECTORS[text]) for text in PAIRS["sentence2"]]


def test_figures_do_not_depend_on_the_blocks_and_equal_sklearn(
    hashed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 50)
    texts = [f"text {row}" for row in range(100)]
    rows = Dataset.from_dict({"sentence1": texts[:50], "sentence2": texts[50:], "label": labels.tolist()})
    weight = generator.normal(size=(8, 4))  # a class more than the labels have

    def classify(u: Array, v: Array) -> Array:
        return (u - v) @ weight

    task = NliTask("many", rows)
    result = task.evaluate(hashed, classify)
    predicted = classify(hashed(texts[:50], ""), hashed(texts[50:], "")).argmax(axis=1)
    assert 3 in predicted  # premise: the class without labels is predicted, too
    assert result.metrics["accuracy"] == pytest.approx(np.mean(predicted == labels))
    assert result.metrics["macro_f1"] == pytest.approx(
        f1_score(labels, predicted, average="macro", zero_division=0)
    )
    monkeypatch.setattr(nli, "PAIRS_PER_BLOCK", 7)
    assert task.evaluate(hashed, classify).metrics == result.metrics


def test_the_sample_gives_the_figures_again_when_every_pair_is_drawn_once(lookup: LookUps) -> None:
    result = NliTask("tiny", Dataset.from_dict(PAIRS)).evaluate(lookup(VECTORS), same_sum)
    again = result.sample.resampled(list(result.metrics), np.ones((1, 4)))
    assert again[0] == pytest.approx(list(result.metrics.values()))


# --- models that it cannot judge ---


def test_a_model_without_a_classifier_is_an_error_that_says_how_to_get_one(lookup: LookUps) -> None:
    encode = lookup(VECTORS)
    with pytest.raises(
        EvaluationError, match=r"eval set 'snli': .* has no classifier; train it with objective softmax"
    ):
        NliTask("snli", Dataset.from_dict(PAIRS)).evaluate(encode)
    assert encode.calls == [], "the error comes before the work"


def test_labels_beyond_the_classes_of_the_classifier_are_an_error(lookup: LookUps) -> None:
    with pytest.raises(
        EvaluationError, match=r"eval set 'snli': expected labels from 0 to 1, the classes .* found 2;"
    ):
        NliTask("snli", Dataset.from_dict(PAIRS)).evaluate(lookup(VECTORS), lambda u, v: u[:, :2])


def test_logits_of_another_shape_are_an_error(lookup: LookUps) -> None:
    with pytest.raises(
        EvaluationError, match=r"eval set 'snli': classifier: expected .* \(4, classes\), found shape \(1, 3"
    ):
        NliTask("snli", Dataset.from_dict(PAIRS)).evaluate(lookup(VECTORS), lambda u, v: u[:1])


def test_logits_that_are_not_finite_are_an_error(lookup: LookUps) -> None:
    with pytest.raises(
        EvaluationError, match="eval set 'snli': classifier: the logits of 3 of 4 pairs are NaN"
    ):
        NliTask("snli", Dataset.from_dict(PAIRS)).evaluate(
            lookup(VECTORS), lambda u, v: np.where(u[:, :1] > 0, np.nan, u)
        )


def test_a_collapsed_model_is_an_error_naming_the_set(lookup: LookUps) -> None:
    with pytest.raises(EvaluationError, match="eval set 'snli': the model embeds all 4 pairs alike"):
        NliTask("snli", Dataset.from_dict(PAIRS)).evaluate(
            lookup(dict.fromkeys("abcd", (1.0, 0.0, 2.0))), same_sum
        )


# --- sets that it cannot judge by ---


def test_a_missing_role_is_an_error_naming_the_set() -> None:
    rows = Dataset.from_dict({"premise": ["a"], "sentence2": ["b"], "label": [1]})
    with pytest.raises(DataError, match=r"eval set 'snli': task nli needs .* map sentence1 under"):
        NliTask("snli", rows)


@pytest.mark.parametrize("label", [-1, 0.5, None])
def test_a_label_that_is_no_class_is_an_error(label: Any) -> None:
    rows = Dataset.from_dict({**PAIRS, "label": [label, label, 2, 2]})
    with pytest.raises(DataError, match=f"eval set 'snli': expected as label a class, .* found {label!r};"):
        NliTask("snli", rows)


def test_a_set_of_one_class_is_an_error() -> None:
    with pytest.raises(
        DataError, match="eval set 'snli': expected at least two classes, found label 2 in all 4"
    ):
        NliTask("snli", Dataset.from_dict({**PAIRS, "label": [2] * 4}))
