"""On the same embeddings our tasks give the figures of sentence-transformers' evaluators."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers.sentence_transformer.evaluation import (
    BinaryClassificationEvaluator,
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
    LabelAccuracyEvaluator,
    RerankingEvaluator,
    TripletEvaluator,
)
from torch.utils.data import DataLoader

from sbert_train.evaluation.metrics import CORRELATION_METRICS, RANKING_METRICS, SIMILARITIES
from sbert_train.evaluation.nli import NliTask
from sbert_train.evaluation.pair_classification import PairClassificationTask
from sbert_train.evaluation.reranking import RerankingTask
from sbert_train.evaluation.retrieval import RetrievalTask
from sbert_train.evaluation.sts import StsTask
from sbert_train.evaluation.triplets import TripletTask

RNG = np.random.default_rng(7)
QUERIES = [f"query {row:03d}" for row in range(40)]
# More than 100 texts, so that map@100 is cut off; the numbers make their order as text the order of rows.
CORPUS = [f"text {row:03d}" for row in range(160)]
VECTORS = dict(zip([*QUERIES, *CORPUS], RNG.normal(size=(200, 6)).astype(np.float32), strict=True))
# Texts with the embedding of another: ties, which both sides must break by position.
VECTORS.update({CORPUS[row]: VECTORS[CORPUS[row - 5]] for row in range(10, 160, 10)})


class FixedModel:
    """As much of a SentenceTransformer as the evaluators use, over fixed embeddings."""

    similarity_fn_name = "cosine"

    class model_card_data:
        @staticmethod
        def set_evaluation_metrics(*args: Any) -> None:
            """Evaluators report here; nobody reads it."""

    def encode(self, texts: Sequence[str], **options: Any) -> Any:
        vectors = np.stack([VECTORS[text] for text in texts])
        return torch.from_numpy(vectors) if options.get("convert_to_tensor") else vectors

    encode_query = encode_document = encode

    @staticmethod
    def similarity(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        # In float64 as ours, or equal embeddings would tie or not as the matrix product happens to sum.
        unit = [torch.nn.functional.normalize(side.double(), dim=-1) for side in (left, right)]
        return (unit[0] @ unit[1].T).float()


def encode(texts: Sequence[str], role: str) -> Any:
    return FixedModel().encode(texts)


def test_sts_equals_the_embedding_similarity_evaluator() -> None:
    rows = {
        "sentence1": QUERIES,
        "sentence2": CORPUS[:40],
        "score": RNG.integers(0, 6, 40).astype(float).tolist(),
    }
    similarities: Any = list(SIMILARITIES)
    theirs = EmbeddingSimilarityEvaluator(
        rows["sentence1"], rows["sentence2"], rows["score"], similarity_fn_names=similarities
    )(FixedModel())  # type: ignore[arg-type]
    ours = StsTask("pairs", Dataset.from_dict(rows)).evaluate(encode).metrics
    assert ours == pytest.approx({name: theirs[name] for name in CORRELATION_METRICS}, abs=1e-6)


def test_retrieval_equals_the_information_retrieval_evaluator() -> None:
    relevant = {query: set(RNG.choice(CORPUS, size=RNG.integers(1, 8)).tolist()) for query in QUERIES}
    # Every text occurs once as a distractor first, so that the corpus is in the order of its names.
    rows = [(QUERIES[0], text, int(text in relevant[QUERIES[0]])) for text in CORPUS]
    rows += [(query, text, 1) for query in QUERIES[1:] for text in sorted(relevant[query])]
    anchors, positives, labels = zip(*rows, strict=True)
    theirs = InformationRetrievalEvaluator(
        queries={query: query for query in QUERIES},
        corpus={text: text for text in CORPUS},
        relevant_docs=relevant,
        precision_recall_at_k=[1, 5, 10],
    )(FixedModel())  # type: ignore[arg-type]
    ours = RetrievalTask(
        "texts", Dataset.from_dict({"anchor": anchors, "positive": positives, "label": labels})
    ).evaluate(encode)
    assert ours.n == 40
    assert 0 < ours.metrics["recall@10"] < 1  # premise: neither all nor nothing is found
    assert ours.metrics == pytest.approx({name: theirs[f"cosine_{name}"] for name in RANKING_METRICS})


def test_pair_classification_equals_the_binary_classification_evaluator() -> None:
    # Every tenth pair has the texts of another: ties, some of them between the labels.
    places = [row - row % 10 // 9 for row in range(40)]
    rows = {
        "sentence1": [QUERIES[row] for row in places],
        "sentence2": [CORPUS[row] for row in places],
        "label": RNG.integers(0, 2, 40).tolist(),
    }
    names: Any = list(SIMILARITIES)
    theirs = BinaryClassificationEvaluator(
        rows["sentence1"], rows["sentence2"], rows["label"], similarity_fn_names=names
    )(FixedModel())  # type: ignore[arg-type]
    ours = PairClassificationTask("pairs", Dataset.from_dict(rows)).evaluate(encode)
    assert ours.metrics == pytest.approx(
        {
            f"{figure}_{name}": theirs[f"{name}_{figure}"]
            for name in names
            for figure in ("ap", "f1", "accuracy")
        }
    )
    assert ours.primary == ours.metrics["ap_cosine"]
    for name in names:
        sign = -1 if name in ("euclidean", "manhattan") else 1  # their thresholds are distances
        f1, accuracy = ours.decisions[f"f1_{name}"], ours.decisions[f"accuracy_{name}"]
        assert [sign * f1["threshold"], f1["precision"], f1["recall"]] == pytest.approx(
            [theirs[f"{name}_f1_threshold"], theirs[f"{name}_precision"], theirs[f"{name}_recall"]]
        )
        assert sign * accuracy["threshold"] == pytest.approx(theirs[f"{name}_accuracy_threshold"])


def test_triplet_equals_the_triplet_evaluator() -> None:
    # CORPUS[row] has the embedding of CORPUS[row - 5] for every tenth row: those triplets tie.
    anchors, positives = QUERIES, CORPUS[5:45]
    negatives = [CORPUS[row + 5] if row % 10 == 5 else CORPUS[row + 50] for row in range(5, 45)]
    assert sum((VECTORS[a] == VECTORS[b]).all() for a, b in zip(positives, negatives, strict=True)) == 4
    names: Any = list(SIMILARITIES)
    theirs = TripletEvaluator(anchors, positives, negatives, similarity_fn_names=names)(FixedModel())  # type: ignore[arg-type]
    rows = {"anchor": anchors, "positive": positives, "negative": [[text] for text in negatives]}
    ours = TripletTask("texts", Dataset.from_dict(rows)).evaluate(encode).metrics
    assert ours == pytest.approx({f"accuracy_{name}": theirs[f"{name}_accuracy"] for name in names})
    assert 0 < ours["accuracy_cosine"] < 1  # premise: some are won, some are not


def test_reranking_equals_the_reranking_evaluator() -> None:
    samples: list[dict[str, Any]] = []
    for query in QUERIES:
        # In steps of 11, so that a text and the one of its embedding, five places away, are not both candidates.
        texts = RNG.permutation(CORPUS[RNG.integers(0, 11) :: 11]).tolist()
        relevant = int(RNG.integers(0, 4))  # none for some queries, which are left out
        samples.append({"query": query, "positive": texts[:relevant], "negative": texts[relevant:]})
    theirs = RerankingEvaluator(samples, at_k=10, similarity_fct=FixedModel.similarity)(FixedModel())  # type: ignore[arg-type]
    rows = [
        (sample["query"], text, int(kind == "positive"))
        for sample in samples
        for kind in ("positive", "negative")
        for text in sample[kind]
    ]
    anchors, positives, labels = zip(*rows, strict=True)
    ours = RerankingTask(
        "qa", Dataset.from_dict({"anchor": anchors, "positive": positives, "label": labels})
    ).evaluate(encode)
    assert 0 < ours.details["queries_without_relevant"] < 20  # premise
    assert ours.metrics == pytest.approx({"map": theirs["map"], "mrr@10": theirs["mrr@10"]})


def test_reranking_counts_ties_in_the_average_precision_as_the_reranking_evaluator_does() -> None:
    twins = [CORPUS[row] for row in (5, 10, 15, 20, 25, 30, 35, 40)]  # 10 is as 5, 20 as 15, ...
    assert all((VECTORS[a] == VECTORS[b]).all() for a, b in zip(twins[0::2], twins[1::2], strict=True))
    samples: list[Any] = [
        {"query": query, "positive": twins[1::4], "negative": twins[0::4] + twins[2::4]} for query in QUERIES
    ]
    theirs = RerankingEvaluator(samples, similarity_fct=FixedModel.similarity)(FixedModel())  # type: ignore[arg-type]
    rows = {"anchor": QUERIES * 2, "positive": [twins[1]] * 40 + [twins[5]] * 40}
    negatives = [twins[0::4] + twins[2::4]] * 80
    ours = RerankingTask("twins", Dataset.from_dict({**rows, "negative": negatives})).evaluate(encode)
    assert ours.metrics["map"] == pytest.approx(theirs["map"])


def test_nli_equals_the_label_accuracy_evaluator() -> None:
    labels = RNG.integers(0, 3, 40).tolist()
    first, second = QUERIES, CORPUS[:40]
    torch.manual_seed(0)
    linear = torch.nn.Linear(18, 3)

    def logits(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            of_pairs: torch.Tensor = linear(torch.cat([u, v, (u - v).abs()], dim=1))
            return of_pairs

    class Model(FixedModel):
        device = torch.device("cpu")

        def eval(self) -> None:
            """It has no dropout."""

        @staticmethod
        def smart_batching_collate(batch: Any) -> Any:
            pairs, gold = zip(*batch, strict=True)
            sides = [
                {"rows": torch.stack([torch.from_numpy(VECTORS[pair[i]]) for pair in pairs])} for i in (0, 1)
            ]
            return sides, torch.tensor(gold)

    def softmax_model(features: Any, labels: None) -> Any:
        return None, logits(features[0]["rows"], features[1]["rows"])

    pairs: Any = [*zip(zip(first, second, strict=True), labels, strict=True)]
    loader = DataLoader(pairs, batch_size=7)
    theirs = LabelAccuracyEvaluator(loader, softmax_model=softmax_model)(Model())  # type: ignore[arg-type]
    rows = Dataset.from_dict({"sentence1": first, "sentence2": second, "label": labels})
    ours = NliTask("snli", rows).evaluate(
        encode, lambda u, v: logits(torch.from_numpy(u), torch.from_numpy(v)).numpy()
    )
    assert 0 < ours.primary < 1  # premise: some are right, some are wrong
    assert ours.metrics["accuracy"] == pytest.approx(theirs["accuracy"])
