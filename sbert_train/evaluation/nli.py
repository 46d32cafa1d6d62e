"""Natural language inference: does the model's own classifier find the class of a pair?

Shapes: N pairs, D dimensions, C classes of the classifier.
"""

from typing import ClassVar

import numpy as np
from datasets import Dataset

from sbert_train.data.hints import listed
from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.classes import CLASS_METRICS
from sbert_train.evaluation.encoding import Classify, Encode, encode_distinct
from sbert_train.evaluation.metrics import PAIRS_PER_BLOCK, Array, is_collapsed
from sbert_train.evaluation.results import TaskResult, Texts
from sbert_train.evaluation.roles import fingerprint, naming_set, require_roles
from sbert_train.evaluation.samples import ClassSample


class NliTask:
    """Accuracy and macro F1 of the classifier over (u, v, |u - v|) that training leaves beside the model.

    Rows: sentence1, sentence2 (text) and label, a class from 0 to C - 1, such as entailment, neutral and
    contradiction; a question of any other kind about two texts serves as well. The classifier is that of the softmax
    objective (Reimers and Gurevych 2019, section 3, classification objective); without one there is no figure.
    """

    kind: ClassVar[str] = "nli"
    roles: ClassVar[tuple[str, ...]] = ("sentence1", "sentence2", "label")
    primary_metric: ClassVar[str] = "accuracy"
    uses_classifier: ClassVar[bool] = True

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take the rows; DataError if a role is missing, a label is no class, or there is one class only."""
        require_roles(rows, self.roles, task=name, kind=self.kind)
        self.name = name
        self.sentence1: list[str] = rows["sentence1"][:]
        self.sentence2: list[str] = rows["sentence2"][:]
        labels: list[int] = rows["label"][:]
        for label in labels:
            if not isinstance(label, int) or label < 0:
                raise DataError(
                    f"eval set {name!r}: expected as label a class, a whole number from 0, found {label!r}; "
                    "filter such rows with `where`"
                )
        if len(set(labels)) < 2:
            raise DataError(
                f"eval set {name!r}: expected at least two classes, found label {labels[0]} in all {len(labels):,} "
                "rows; check `where`, `limit` and the label column"
            )
        self.labels = np.asarray(labels, dtype=np.int64)
        self.fingerprint = fingerprint(self.sentence1, self.sentence2, self.labels.tolist())

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Embed both sides in their roles and classify; EvaluationError, naming the set, if the model has no
        classifier, one of fewer classes, or has collapsed or diverged."""
        with naming_set(self.name):
            predicted = self._predicted(encode, classify)
        once = np.ones((1, len(self.labels)))
        return TaskResult(
            task=self.name,
            kind=self.kind,
            metrics={
                name: float(metric(self.labels, predicted, once)[0]) for name, metric in CLASS_METRICS.items()
            },
            primary_metric=self.primary_metric,
            n=len(self.labels),
            unit="pairs",
            details={"pairs": len(self.labels), "classes": len(np.unique(self.labels))},
            fingerprint=self.fingerprint,
            sample=ClassSample(self.labels, predicted),
        )

    def texts_of(self, example: int) -> Texts:
        """Both sentences of a pair."""
        return ("sentence1", self.sentence1[example]), ("sentence2", self.sentence2[example])

    def _predicted(self, encode: Encode, classify: Classify | None) -> Array:
        """The class that the classifier finds most likely for each pair, (N,)."""
        if classify is None:
            raise EvaluationError(
                "task nli needs the classifier that training leaves beside a model, and this model has no classifier; "
                "train it with objective softmax"
            )
        u = encode_distinct(encode, self.sentence1, "sentence1")
        v = encode_distinct(encode, self.sentence2, "sentence2")
        if is_collapsed(u) and is_collapsed(v):
            raise EvaluationError(
                f"the model embeds all {len(u):,} pairs alike, so no classifier can tell them apart; "
                "it has collapsed: lower the learning rate or check the pooling"
            )
        blocks = [slice(start, start + PAIRS_PER_BLOCK) for start in range(0, len(u), PAIRS_PER_BLOCK)]
        logits = np.concatenate([np.asarray(classify(u[b], v[b])) for b in blocks])
        if logits.ndim != 2 or len(logits) != len(u):
            raise EvaluationError(
                f"classifier: expected logits of shape ({len(u)}, classes), found shape {logits.shape}; "
                "return one row for each pair"
            )
        broken = np.count_nonzero(~np.isfinite(logits).all(axis=1))
        if broken:
            raise EvaluationError(
                f"classifier: the logits of {broken:,} of {len(u):,} pairs are NaN or infinite; "
                "the model has diverged: lower the learning rate or use precision fp32"
            )
        beyond = np.unique(self.labels[self.labels >= logits.shape[1]]).tolist()
        if beyond:
            raise EvaluationError(
                f"expected labels from 0 to {logits.shape[1] - 1}, the classes of the model's classifier, found "
                f"{listed(beyond, most=5)}; filter these rows with `where`, or evaluate a model of these classes"
            )
        predicted: Array = logits.argmax(axis=1)
        return predicted
