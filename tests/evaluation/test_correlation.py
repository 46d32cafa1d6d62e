"""The evaluate.Metric computes what scipy does, in memory only, and feeds Trainer."""

from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
from scipy import stats
from transformers import EvalPrediction

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.correlation import Correlation, compute_metrics
from sbert_train.evaluation.metrics import CORRELATION_METRICS


@pytest.fixture
def watched_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty working directory and an empty cache for evaluate."""
    cwd, cache = tmp_path / "cwd", tmp_path / "cache"
    cwd.mkdir()
    cache.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(evaluate.module.config, "HF_METRICS_CACHE", cache)
    return cwd, cache


def test_it_is_an_evaluate_metric_that_equals_scipy_on_ties() -> None:
    predictions, references = [0.1, 0.1, 0.4, 0.9, 0.3], [1.0, 2.0, 2.0, 5.0, 0.0]
    metric = Correlation()
    assert isinstance(metric, evaluate.Metric)
    assert metric.compute(predictions=predictions, references=references) == pytest.approx(
        {
            "pearson": stats.pearsonr(predictions, references).statistic,
            "spearman": stats.spearmanr(predictions, references).statistic,
        }
    )


def test_batches_may_be_added_one_by_one() -> None:
    metric = Correlation()
    metric.add_batch(predictions=[1.0, 2.0], references=[10.0, 20.0])
    metric.add_batch(predictions=np.array([3.0]), references=np.array([5.0]))
    assert metric.compute()["spearman"] == pytest.approx(-0.5)


def test_it_does_not_round_to_float32() -> None:
    references = np.array([1.0, 1.0 + 1e-9, 1.0 + 2e-9])
    assert len(np.unique(references.astype(np.float32))) == 1  # premise: float32 would tie all of them
    assert Correlation().compute(predictions=np.arange(3), references=references)["spearman"] > 0.99


def test_constant_predictions_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="all 3 predictions are 1"):
        Correlation().compute(predictions=np.ones(3), references=np.arange(3))


def test_an_instance_can_be_used_again_after_an_error() -> None:
    metric = Correlation()
    with pytest.raises(EvaluationError):
        metric.compute(predictions=np.ones(3), references=np.arange(3))
    assert metric.compute(predictions=np.arange(3), references=np.arange(3))["pearson"] == pytest.approx(1.0)


def test_nothing_is_written_to_disk(watched_folders: tuple[Path, Path]) -> None:
    evaluate_s_own = evaluate.Metric._build_data_dir

    class Writing(Correlation):
        _build_data_dir = evaluate_s_own

    Writing().compute(predictions=np.arange(3), references=np.arange(3))
    cwd, cache = watched_folders
    assert list(cache.iterdir())  # premise: evaluate itself makes a folder even when it works in memory
    for folder in cache.rglob("*"):
        assert folder.is_dir()
    before = sorted(cache.rglob("*"))

    Correlation().compute(predictions=np.arange(3), references=np.arange(3))
    assert sorted(cache.rglob("*")) == before
    assert list(cwd.iterdir()) == []


def test_instances_do_not_disturb_each_other(watched_folders: tuple[Path, Path]) -> None:
    first, second = Correlation(), Correlation()
    first.add_batch(predictions=[1.0, 2.0, 3.0], references=[1.0, 2.0, 3.0])
    second.add_batch(predictions=[1.0, 2.0, 3.0], references=[3.0, 2.0, 1.0])
    assert first.compute()["pearson"] == pytest.approx(1.0)
    assert second.compute()["pearson"] == pytest.approx(-1.0)
    assert [list(folder.iterdir()) for folder in watched_folders] == [[], []]  # no file and no lock to share


def test_the_global_random_state_is_left_alone() -> None:
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    Correlation().compute(predictions=np.arange(3), references=np.arange(3))
    assert np.random.random() == expected


# --- compute_metrics ---


def prediction(u: Any, v: Any, gold: Any) -> EvalPrediction:
    pair: Any = (np.asarray(u), np.asarray(v))  # transformers declares a tuple of one
    return EvalPrediction(predictions=pair, label_ids=np.asarray(gold))


def test_compute_metrics_equals_scipy_for_every_similarity() -> None:
    u, v = np.random.default_rng(0).normal(size=(2, 40, 6)).astype(np.float32)
    gold = np.random.default_rng(1).integers(0, 6, 40)
    similarities = {
        "cosine": np.array(
            [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(u, v, strict=True)]
        ),
        "dot": np.array([a @ b for a, b in zip(u, v, strict=True)]),
        "euclidean": np.array([-np.sqrt(((a - b) ** 2).sum()) for a, b in zip(u, v, strict=True)]),
        "manhattan": np.array([-np.abs(a - b).sum() for a, b in zip(u, v, strict=True)]),
    }
    figures = compute_metrics(prediction(u, v, gold))
    assert list(figures) == list(CORRELATION_METRICS)
    for name, similarity in similarities.items():
        assert figures[f"pearson_{name}"] == pytest.approx(
            stats.pearsonr(similarity, gold).statistic, abs=1e-6
        )
        assert figures[f"spearman_{name}"] == pytest.approx(
            stats.spearmanr(similarity, gold).statistic, abs=1e-6
        )
    assert all(type(figure) is float for figure in figures.values())


def test_pairs_that_open_as_their_scores_fall_correlate_perfectly() -> None:
    angles = np.deg2rad([0, 20, 50, 90, 140])
    v = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    figures = compute_metrics(prediction(np.tile([1.0, 0.0], (5, 1)), v, [5, 4, 3, 2, 1]))
    assert {name: figures[name] for name in figures if name.startswith("spearman")} == pytest.approx(
        dict.fromkeys(["spearman_cosine", "spearman_dot", "spearman_euclidean", "spearman_manhattan"], 1.0)
    )
    assert figures["pearson_cosine"] == pytest.approx(
        stats.pearsonr(np.cos(angles), [5, 4, 3, 2, 1]).statistic
    )


def test_a_collapsed_model_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="embeds all 4 pairs alike"):
        compute_metrics(prediction(np.ones((4, 3)), np.ones((4, 3)), np.arange(4)))


def test_the_similarity_that_is_constant_is_named() -> None:
    u = np.array([[1.0], [2.0], [3.0]])  # in one dimension all cosines are 1
    with pytest.raises(EvaluationError, match="cosine similarity: Pearson is undefined: all 3 predictions"):
        compute_metrics(prediction(u, u + 1, np.arange(3)))


def test_a_single_pair_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="expected at least 2 pairs, found 1"):
        compute_metrics(prediction(np.ones((1, 3)), np.ones((1, 3)), np.ones(1)))


@pytest.mark.parametrize(
    ("predictions", "found"), [(np.ones((4, 3)), "one ndarray"), ((np.ones((4, 3)),) * 3, "3 arrays")]
)
def test_predictions_that_are_no_pair_are_an_error(predictions: Any, found: str) -> None:
    with pytest.raises(EvaluationError, match=rf"expected predictions \(u, v\).*found {found}"):
        compute_metrics(EvalPrediction(predictions=predictions, label_ids=np.arange(4)))


def test_gold_scores_that_do_not_match_are_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"one gold score for each of 4 pairs, found shape \(3,\)"):
        compute_metrics(prediction(np.ones((4, 3)), np.ones((4, 3)), np.arange(3)))
