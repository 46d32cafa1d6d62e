"""Triplets: is an anchor nearer to its positive than to its negative?

Shapes: N rows, K negatives of a row, D dimensions.
"""

from typing import ClassVar

import numpy as np
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.encoding import Classify, Encode, encode_distinct
from sbert_train.evaluation.metrics import SIMILARITIES, is_collapsed, pair_similarities
from sbert_train.evaluation.relevance import negatives_of
from sbert_train.evaluation.results import Cosines, TaskResult, Texts
from sbert_train.evaluation.roles import fingerprint, naming_set, require_roles
from sbert_train.evaluation.samples import QuerySample


class TripletTask:
    """Share of the triplets whose anchor is more similar to the positive than to the negative.

    Rows: anchor, positive, negative (one text or several, as many in every row). Each negative makes a triplet with
    its row's anchor and positive. A tie is not won: a model must tell the two apart. There is no margin.

    The examples of the bootstrap are the rows: triplets of one row share two texts of three, and drawn one by one
    they would make an interval look narrower than it is.
    """

    kind: ClassVar[str] = "triplet"
    roles: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")
    primary_metric: ClassVar[str] = "accuracy_cosine"
    uses_classifier: ClassVar[bool] = False

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take the rows; DataError if a role is missing, rows differ in their number of negatives, or none can be
        won."""
        require_roles(rows, self.roles, task=name, kind=self.kind)
        self.name = name
        self.anchors: list[str] = rows["anchor"][:]
        self.positives: list[str] = rows["positive"][:]
        negatives = negatives_of(rows, task=name)
        numbers = {len(texts) for texts in negatives}
        if len(numbers) > 1 or 0 in numbers:
            raise DataError(
                f"eval set {name!r}: expected as many negatives in every row, at least one, found from "
                f"{min(numbers)} to {max(numbers)}; fill them up or leave some out"
            )
        self.per_row = numbers.pop()
        self.negatives = [text for texts in negatives for text in texts]  # (N * K), row by row
        if self.negatives == [text for text in self.positives for _ in range(self.per_row)]:
            raise DataError(
                f"eval set {name!r}: every negative is the positive of its row, so no triplet can be won; "
                "check `columns`"
            )
        self.fingerprint = fingerprint(self.anchors, self.positives, self.negatives)

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Embed and compare; EvaluationError, naming the set, if the embeddings can decide nothing."""
        with naming_set(self.name):
            anchors = encode_distinct(encode, self.anchors, "anchor")
            positives = encode_distinct(encode, self.positives, "positive")
            negatives = encode_distinct(encode, self.negatives, "negative")
            texts = np.concatenate([positives, negatives])
            if is_collapsed(texts):
                raise EvaluationError(
                    f"the model embeds all {len(texts):,} positives and negatives alike, so it cannot tell them apart; "
                    "it has collapsed: lower the learning rate or check the pooling"
                )
            similarities = pair_similarities(
                np.concatenate([anchors, np.repeat(anchors, self.per_row, axis=0)]), texts
            )
        rows = len(self.anchors)
        won = {
            f"accuracy_{name}": (values[:rows, None] > values[rows:].reshape(rows, self.per_row)).mean(axis=1)
            for name, values in ((name, similarities[name]) for name in SIMILARITIES)
        }
        return TaskResult(
            task=self.name,
            kind=self.kind,
            metrics={metric: float(shares.mean()) for metric, shares in won.items()},
            primary_metric=self.primary_metric,
            n=rows,
            unit="triplets" if self.per_row == 1 else f"rows of {self.per_row} triplets",
            details={"rows": rows, "triplets": len(self.negatives)},
            fingerprint=self.fingerprint,
            sample=QuerySample(won),
            cosines=Cosines(similarities["cosine"][:rows], similarities["cosine"][rows:]),
        )

    def texts_of(self, example: int) -> Texts:
        """The anchor, the positive and the negatives of a row."""
        negatives = self.negatives[example * self.per_row : (example + 1) * self.per_row]
        pair = ("anchor", self.anchors[example]), ("positive", self.positives[example])
        return (*pair, *(("negative", text) for text in negatives))
