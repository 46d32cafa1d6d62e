"""A saved model -> its figures, by one code for both sides: our encoder and our tasks.

Shapes: N texts or pairs, D dimensions, C classes.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from safetensors.numpy import load_file
from sklearn.metrics import average_precision_score

from benchmarks import data
from sbert_train.evaluation.encoding import encode_distinct
from sbert_train.evaluation.tasks import make_task
from sbert_train.model.encoder import SentenceEncoder

Array = NDArray[np.float64]
Figures = Mapping[str, float]


def figures(
    model: str, names: Sequence[str], folder: Path, classifier: Path | None = None
) -> dict[str, float]:
    """Judge a saved model.

    Args:
        model: what `SentenceEncoder.load` reads.
        names: keys of FIGURES.
        folder: the data.
        classifier: see `Trained`.

    Returns:
        name of the figure, such as stsb_dev_spearman -> value; larger is better.

    Raises:
        ValueError: one of the names is in OF_A_CLASSIFIER, and there is none.
    """
    encoder = SentenceEncoder.load(model, device="cpu")
    found: dict[str, float] = {}
    for name in names:
        found |= FIGURES[name](encoder, folder, classifier)
    return found


def stsb(encoder: SentenceEncoder, folder: Path, split: str) -> Figures:
    """Spearman and Pearson correlation of the cosine with the gold scores."""
    rows = Dataset.from_list([dict(row) for row in data.stsb(folder, split)])
    metrics = make_task("sts", f"stsb_{split}", rows).evaluate(encode_with(encoder)).metrics
    return {f"stsb_{split}_{kind}": metrics[f"{kind}_cosine"] for kind in ("spearman", "pearson")}


def snli_accuracy(encoder: SentenceEncoder, folder: Path, classifier: Path | None) -> Figures:
    """Share of the pairs of SNLI test whose class a trained classifier finds."""
    if classifier is None:
        raise ValueError(
            "snli_test: expected a trained classifier, found none; hand it over as Trained.classifier"
        )
    rows = data.snli_labelled(folder, "test")
    encode = encode_with(encoder)
    first, second = (
        np.asarray(encode_distinct(encode, [row[side] for row in rows], side), dtype=np.float64)
        for side in ("sentence1", "sentence2")
    )
    weights = load_file(classifier)
    found = classify(first, second, weights["weight"], weights["bias"])
    return {"snli_test_accuracy": float(np.mean(found == [row["label"] for row in rows]))}


def classify(first: Array, second: Array, weight: Array, bias: Array) -> NDArray[np.intp]:
    """The class (N,) of each pair of embeddings (N, D) each, by the linear layer (C, 3 D), (C,) over [u, v, |u - v|].

    The features of Reimers & Gurevych 2019, section 3.
    """
    features = np.concatenate([first, second, np.abs(first - second)], axis=1)
    logits: Array = features @ weight.T + bias
    best: NDArray[np.intp] = logits.argmax(axis=1)
    return best


def trecqa(encoder: SentenceEncoder, folder: Path) -> Figures:
    """MAP and MRR where each question ranks its own candidates by cosine."""
    questions = data.trecqa_candidates(folder, "test")
    encode = encode_with(encoder)
    answers = [answer for candidates in questions.values() for answer, _ in candidates]
    asked = unit(encode_distinct(encode, list(questions), "anchor"))
    answered = unit(encode_distinct(encode, answers, "positive"))
    precisions, ranks, start = [], [], 0
    for question, candidates in zip(asked, questions.values(), strict=True):
        scores = answered[start : start + len(candidates)] @ question
        labels = np.array([label for _, label in candidates])
        precisions.append(float(average_precision_score(labels, scores)))
        ranks.append(reciprocal_rank(labels, scores))
        start += len(candidates)
    return {"trecqa_test_map": float(np.mean(precisions)), "trecqa_test_mrr": float(np.mean(ranks))}


def reciprocal_rank(labels: NDArray[np.int_], scores: Array) -> float:
    """1 / rank of the best positive, behind the negatives that score as high: a tie earns nothing.

    >>> reciprocal_rank(np.array([0, 1, 1, 0]), np.array([0.9, 0.5, 0.2, 0.5]))
    0.3333333333333333
    """
    best = scores[labels == 1].max()
    return 1.0 / (1 + int(np.count_nonzero(scores[labels == 0] >= best)))


def encode_with(encoder: SentenceEncoder) -> Callable[[Sequence[str], str], NDArray[np.float32]]:
    """What our tasks ask for embeddings."""
    return lambda texts, role: encoder.encode(texts, role=role)


def unit(embeddings: NDArray[np.floating]) -> Array:
    """(N, D) scaled to length 1."""
    wide = np.asarray(embeddings, dtype=np.float64)
    scaled: Array = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return scaled


FIGURES: Mapping[str, Callable[[SentenceEncoder, Path, Path | None], Figures]] = {
    "stsb_dev": lambda encoder, folder, _: stsb(encoder, folder, "dev"),
    "stsb_test": lambda encoder, folder, _: stsb(encoder, folder, "test"),
    "snli_test": snli_accuracy,
    "trecqa_test": lambda encoder, folder, _: trecqa(encoder, folder),
}
"""What a model can be judged by."""

OF_A_CLASSIFIER = frozenset({"snli_test"})
"""Figures of a classifier that was trained with the model; a model without one has them not."""
