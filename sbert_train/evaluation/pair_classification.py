"""Pair classification: does a threshold on the similarity tell pairs that belong together from those that do not?

Shapes: N pairs.
"""

from typing import ClassVar

import numpy as np
from datasets import Dataset

from sbert_train.errors import DataError
from sbert_train.evaluation.encoding import Classify, Encode, encode_distinct
from sbert_train.evaluation.metrics import SIMILARITIES, pair_similarities
from sbert_train.evaluation.results import Cosines, TaskResult, Texts
from sbert_train.evaluation.roles import fingerprint, naming_set, require_roles
from sbert_train.evaluation.samples import BinarySample
from sbert_train.evaluation.thresholds import (
    THRESHOLD_METRICS,
    Cuts,
    at_best_accuracy,
    at_best_f1,
    cut,
)


class PairClassificationTask:
    """Average precision, best F1 and best accuracy of a threshold on each of four similarities.

    Rows: sentence1, sentence2 (text) and label, 1 for pairs that belong together (duplicates, paraphrases), else 0.

    The best thresholds are those of this very set, so that F1 and accuracy are what it allows at most; average
    precision needs no threshold. The result's decisions tell, for each f1_S and accuracy_S, the threshold on S (a
    distance is negated: a pair is similar where S is at or above the threshold), and for f1_S its precision and recall.
    """

    kind: ClassVar[str] = "pair_classification"
    roles: ClassVar[tuple[str, ...]] = ("sentence1", "sentence2", "label")
    primary_metric: ClassVar[str] = "ap_cosine"
    uses_classifier: ClassVar[bool] = False

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take the rows; DataError if a role is missing, a label is unknown, or there is one kind of pairs only."""
        require_roles(rows, self.roles, task=name, kind=self.kind)
        self.name = name
        self.sentence1: list[str] = rows["sentence1"][:]
        self.sentence2: list[str] = rows["sentence2"][:]
        labels: list[int] = rows["label"][:]
        for label in labels:
            if label not in (0, 1):
                raise DataError(
                    f"eval set {name!r}: expected label 1 (they belong together) or 0 (they do not), found {label!r}; "
                    "filter such rows with `where`, or take task nli for more than two classes"
                )
        if len(set(labels)) < 2:
            raise DataError(
                f"eval set {name!r}: expected pairs of both kinds, found label {labels[0]} in all {len(labels):,} "
                "rows; check `where`, `limit` and the label column"
            )
        self.labels = np.asarray(labels, dtype=np.int64)
        self.fingerprint = fingerprint(self.sentence1, self.sentence2, self.labels.tolist())

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Embed both sides in their roles and find the thresholds; EvaluationError, naming the set, if undefined."""
        with naming_set(self.name):
            similarities = pair_similarities(
                encode_distinct(encode, self.sentence1, "sentence1"),
                encode_distinct(encode, self.sentence2, "sentence2"),
            )
        sample = BinarySample(self.labels, similarities)
        once = np.ones((1, len(self.labels)))
        names = list(THRESHOLD_METRICS)
        return TaskResult(
            task=self.name,
            kind=self.kind,
            metrics=dict(zip(names, sample.resampled(names, once)[0].tolist(), strict=True)),
            primary_metric=self.primary_metric,
            n=len(self.labels),
            unit="pairs",
            details={"pairs": len(self.labels), "positives": int(self.labels.sum())},
            fingerprint=self.fingerprint,
            decisions={
                metric: decision
                for name in SIMILARITIES
                for metric, decision in _decisions(name, cut(similarities[name], self.labels, once)).items()
            },
            sample=sample,
            cosines=Cosines(
                similarities["cosine"][self.labels == 1], similarities["cosine"][self.labels == 0]
            ),
        )

    def texts_of(self, example: int) -> Texts:
        """Both sentences of a pair."""
        return ("sentence1", self.sentence1[example]), ("sentence2", self.sentence2[example])


def _decisions(similarity: str, cuts: Cuts) -> dict[str, dict[str, float]]:
    return {f"f1_{similarity}": at_best_f1(cuts), f"accuracy_{similarity}": at_best_accuracy(cuts)}
