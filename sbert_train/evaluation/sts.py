"""Semantic textual similarity: do similarities of sentence pairs rise and fall with human scores?

Shapes: N pairs.
"""

from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from transformers import EvalPrediction

from sbert_train.data.hints import as_mapped
from sbert_train.errors import DataError
from sbert_train.evaluation.correlation import compute_metrics
from sbert_train.evaluation.encoding import Classify, Encode, encode_distinct
from sbert_train.evaluation.metrics import Floats, is_constant, pair_similarities
from sbert_train.evaluation.results import Cosines, TaskResult, Texts
from sbert_train.evaluation.roles import fingerprint, naming_set, require_roles
from sbert_train.evaluation.samples import PairSample


class StsTask:
    """Pearson and Spearman of four similarities with the gold scores (Cer et al. 2017, STS benchmark).

    Rows: sentence1, sentence2 (text) and score (a number on any scale: correlations do not see it).
    """

    kind: ClassVar[str] = "sts"
    roles: ClassVar[tuple[str, ...]] = ("sentence1", "sentence2", "score")
    primary_metric: ClassVar[str] = "spearman_cosine"
    uses_classifier: ClassVar[bool] = False

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take the rows; DataError if a role is missing, or the scores can rank nothing."""
        require_roles(rows, self.roles, task=name, kind=self.kind)
        self.name = name
        self.sentence1: list[str] = rows["sentence1"][:]
        self.sentence2: list[str] = rows["sentence2"][:]
        self.gold = np.asarray(rows["score"][:], dtype=np.float64)
        unscored = np.count_nonzero(~np.isfinite(self.gold))
        if unscored:
            raise DataError(
                f"eval set {name!r}: {unscored:,} of {len(rows):,} rows have no finite score; "
                "mend or filter these rows"
            )
        if len(rows) < 2 or is_constant(self.gold):
            raise DataError(
                f"eval set {name!r}: expected at least two different scores, found {len(rows):,} rows "
                f"with score {self.gold[0]:.6g}{as_mapped(self.gold[0])}; check `where`, `limit` and the score column"
            )
        self.fingerprint = fingerprint(self.sentence1, self.sentence2, self.gold.tolist())

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Embed both sides in their roles and correlate; EvaluationError, naming the set, if undefined."""
        with naming_set(self.name):
            pair = (
                encode_distinct(encode, self.sentence1, "sentence1"),
                encode_distinct(encode, self.sentence2, "sentence2"),
            )
            both: Any = pair  # the type of EvalPrediction knows no pairs
            metrics = compute_metrics(EvalPrediction(predictions=both, label_ids=self.gold))
        similarities = pair_similarities(*pair)
        return TaskResult(
            task=self.name,
            kind=self.kind,
            metrics=metrics,
            primary_metric=self.primary_metric,
            n=len(self.gold),
            unit="pairs",
            details={"pairs": len(self.gold)},
            fingerprint=self.fingerprint,
            sample=PairSample(self.gold, similarities),
            cosines=self._by_third(similarities["cosine"]),
        )

    def texts_of(self, example: int) -> Texts:
        """Both sentences of a pair."""
        return ("sentence1", self.sentence1[example]), ("sentence2", self.sentence2[example])

    def _by_third(self, cosines: Floats) -> Cosines:
        """Those of the pairs whose scores lie in the upper and in the lower third of the range of scores."""
        low, high = self.gold.min(), self.gold.max()
        third = (high - low) / 3
        return Cosines(cosines[self.gold >= high - third], cosines[self.gold <= low + third])
