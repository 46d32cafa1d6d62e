"""The clustering task: figures of known clusters, resampling, and sets it cannot judge by."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sklearn.metrics import homogeneity_completeness_v_measure

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.clustering import ClusteringTask, k_means
from sbert_train.evaluation.samples import ClusterSample

Angles = Callable[[Mapping[str, float]], Any]
ROWS: Mapping[str, Any] = {"sentence1": ["a", "b", "c", "d", "e", "f"], "label": [7, 7, 7, 2, 2, 2]}
TOGETHER = {"a": 0, "b": 5, "c": 10, "d": 90, "e": 95, "f": 100}


def test_labels_that_lie_together_are_found(at_angles: Angles) -> None:
    encode = at_angles(TOGETHER)
    result = ClusteringTask("tiny", Dataset.from_dict(ROWS)).evaluate(encode)
    assert result.metrics == pytest.approx({"v_measure": 1.0, "homogeneity": 1.0, "completeness": 1.0})
    assert encode.calls == [(["a", "b", "c", "d", "e", "f"], "sentence1")]
    assert result.primary == result.metrics["v_measure"]
    assert (result.task, result.kind, result.n, result.unit) == ("tiny", "clustering", 6, "texts")
    assert result.details == {"texts": 6, "labels": 2}


def test_figures_equal_sklearn_on_the_clusters_that_the_angles_make(at_angles: Angles) -> None:
    encode = at_angles({**TOGETHER, "c": 91, "f": 1})  # one text of each label is among the others
    result = ClusteringTask("tiny", Dataset.from_dict(ROWS)).evaluate(encode)
    expected = homogeneity_completeness_v_measure(ROWS["label"], [0, 0, 1, 1, 1, 0])
    names = ["homogeneity", "completeness", "v_measure"]
    assert [result.metrics[name] for name in names] == pytest.approx(expected)
    assert 0 < result.primary < 1  # premise


def test_a_second_evaluation_gives_the_same_figures(hashed: Any) -> None:
    texts = [f"text {row}" for row in range(60)]
    task = ClusteringTask(
        "many", Dataset.from_dict({"sentence1": texts, "label": [row % 5 for row in range(60)]})
    )
    state = np.random.get_state()[1].tolist()  # type: ignore[index]
    first = task.evaluate(hashed).metrics
    assert task.evaluate(hashed).metrics == first
    assert np.random.get_state()[1].tolist() == state, "the global generator is left alone"  # type: ignore[index]


def test_there_are_as_many_clusters_as_labels() -> None:
    embeddings = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    assert set(k_means(embeddings, 7)) == set(range(7))


def test_where_fewer_embeddings_differ_there_are_as_many_clusters_as_of_these() -> None:
    embeddings = np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1, 2, 0]]
    found = k_means(embeddings, 5)  # k-means itself would warn of it
    assert len(set(found)) == 3
    assert (found[:3] == found[3:6]).all()


def test_the_sample_gives_the_figures_again_when_every_text_is_drawn_once(at_angles: Angles) -> None:
    result = ClusteringTask("tiny", Dataset.from_dict(ROWS)).evaluate(at_angles({**TOGETHER, "c": 91}))
    again = result.sample.resampled(list(result.metrics), np.ones((1, 6)))
    assert again[0] == pytest.approx(list(result.metrics.values()))


def test_the_clusters_stay_as_they_are_when_texts_are_drawn(at_angles: Angles) -> None:
    result = ClusteringTask("tiny", Dataset.from_dict(ROWS)).evaluate(at_angles({**TOGETHER, "c": 91}))
    assert isinstance(result.sample, ClusterSample)
    before = result.sample.clusters.copy()
    result.sample.resampled(["v_measure"], np.array([[0.0, 0.0, 6.0, 0.0, 0.0, 0.0]]))
    assert result.sample.clusters.tolist() == before.tolist()


def test_a_missing_role_is_an_error_naming_the_set() -> None:
    with pytest.raises(DataError, match=r"eval set 'news': task clustering needs .* map sentence1 under"):
        ClusteringTask("news", Dataset.from_dict({"title": ["a"], "label": [1]}))


def test_a_missing_label_is_an_error() -> None:
    with pytest.raises(DataError, match="eval set 'news': 2 of 6 rows have no label; mend or filter"):
        ClusteringTask("news", Dataset.from_dict({**ROWS, "label": [1, None, 2, None, 1, 2]}))


def test_a_set_of_one_label_is_an_error() -> None:
    with pytest.raises(
        DataError, match="eval set 'news': expected at least two labels, found 3 in all 6 rows"
    ):
        ClusteringTask("news", Dataset.from_dict({**ROWS, "label": [3] * 6}))


@pytest.mark.parametrize(
    "rows",
    [{**ROWS, "label": [0, 1, 2, 3, 4, 5]}, {"sentence1": ["a", "b", "a", "b"], "label": [0, 1, 0, 1]}],
)
def test_a_set_with_a_cluster_for_each_text_is_an_error(rows: Any) -> None:
    with pytest.raises(
        DataError, match=r"eval set 'news': expected more texts than labels, found (6|2) different"
    ):
        ClusteringTask("news", Dataset.from_dict(rows))


def test_a_collapsed_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    with pytest.raises(EvaluationError, match="eval set 'news': the model embeds all 6 texts alike"):
        ClusteringTask("news", Dataset.from_dict(ROWS)).evaluate(at_angles(dict.fromkeys("abcdef", 10)))


def test_a_diverged_model_is_an_error_naming_the_set(at_angles: Angles) -> None:
    with pytest.raises(
        EvaluationError, match="eval set 'news': embeddings of role sentence1: 1 of 6 hold NaN"
    ):
        ClusteringTask("news", Dataset.from_dict(ROWS)).evaluate(at_angles({**TOGETHER, "f": np.nan}))
