"""The sts task: figures, what it keeps for resampling, and sets it cannot judge by."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from scipy import stats
from transformers import EvalPrediction

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.correlation import compute_metrics
from sbert_train.evaluation.sts import StsTask

Angles = Callable[[Mapping[str, float]], Any]
PAIRS = {
    "sentence1": ["a", "a", "b", "a"],
    "sentence2": ["a", "b", "c", "c"],
    "score": [5.0, 2.0, 2.0, 0.0],
}


def test_pairs_are_scored_by_their_angle(at_angles: Angles) -> None:
    encode = at_angles({"a": 0, "b": 30, "c": 75})
    result = StsTask("tiny", Dataset.from_dict(PAIRS)).evaluate(encode)
    cosines = np.cos(np.deg2rad([0, 30, 45, 75]))
    assert result.metrics["pearson_cosine"] == pytest.approx(
        stats.pearsonr(cosines, PAIRS["score"]).statistic
    )
    assert result.metrics["spearman_cosine"] == pytest.approx(
        stats.spearmanr(cosines, PAIRS["score"]).statistic
    )
    assert result.primary == result.metrics["spearman_cosine"]
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "sts", 4, "pairs")
    assert result.details == {"pairs": 4}


def test_figures_are_those_that_trainer_computes(at_angles: Angles) -> None:
    encode = at_angles({"a": 0, "b": 30, "c": 75})
    result = StsTask("tiny", Dataset.from_dict(PAIRS)).evaluate(encode)
    pair: Any = tuple(encode(PAIRS[role], role) for role in ("sentence1", "sentence2"))
    assert result.metrics == compute_metrics(EvalPrediction(pair, np.array(PAIRS["score"])))


def test_each_side_is_encoded_in_its_role_and_texts_only_once(at_angles: Angles) -> None:
    encode = at_angles({"a": 0, "b": 30, "c": 75})
    StsTask("tiny", Dataset.from_dict(PAIRS)).evaluate(encode)
    assert encode.calls == [(["a", "b"], "sentence1"), (["a", "b", "c"], "sentence2")]


def test_the_sample_gives_the_figures_again_when_every_pair_is_drawn_once(at_angles: Angles) -> None:
    result = StsTask("tiny", Dataset.from_dict(PAIRS)).evaluate(at_angles({"a": 0, "b": 30, "c": 75}))
    again = result.sample.resampled(list(result.metrics), np.ones((1, 4)))
    assert again[0] == pytest.approx(list(result.metrics.values()))


def test_results_of_equal_figures_are_equal(at_angles: Angles) -> None:
    task = StsTask("tiny", Dataset.from_dict(PAIRS))
    first, second = (task.evaluate(at_angles({"a": 0, "b": 30, "c": 75})) for _ in range(2))
    assert first.sample is not second.sample  # premise
    assert first == second


def test_a_missing_role_is_an_error_naming_the_set_what_is_needed_and_what_was_found() -> None:
    rows = Dataset.from_dict({"sentence1": ["a"], "text2": ["b"], "label": [1]})
    with pytest.raises(
        DataError,
        match=r"eval set 'dev': task sts needs the roles sentence1, sentence2, score, "
        r"found columns sentence1, text2, label; map sentence2, score under `columns`",
    ):
        StsTask("dev", rows)


def test_an_empty_set_is_an_error() -> None:
    with pytest.raises(DataError, match="eval set 'dev': expected rows, found none; check the file"):
        StsTask("dev", Dataset.from_dict({"sentence1": [], "sentence2": [], "score": []}))


@pytest.mark.parametrize("scores", [[3.0], [3.0, 3.0, 3.0]])
def test_a_set_of_one_score_is_an_error(scores: list[float]) -> None:
    texts = [str(row) for row in range(len(scores))]
    rows = Dataset.from_dict({"sentence1": texts, "sentence2": texts, "score": scores})
    with pytest.raises(DataError, match=f"eval set 'dev': .* found {len(scores)} rows with score 3; check"):
        StsTask("dev", rows)


def test_a_missing_score_is_an_error() -> None:
    rows = Dataset.from_dict({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, None]})
    with pytest.raises(DataError, match="eval set 'dev': 1 of 2 rows have no finite score"):
        StsTask("dev", rows)


def test_a_collapsed_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    with pytest.raises(EvaluationError, match="eval set 'tiny': the model embeds all 4 pairs alike"):
        StsTask("tiny", Dataset.from_dict(PAIRS)).evaluate(at_angles({"a": 9, "b": 9, "c": 9}))


def test_a_diverged_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    with pytest.raises(
        EvaluationError, match="eval set 'tiny': embeddings of role sentence1: 1 of 2 hold NaN"
    ):
        StsTask("tiny", Dataset.from_dict(PAIRS)).evaluate(at_angles({"a": 9, "b": np.nan, "c": 9}))
