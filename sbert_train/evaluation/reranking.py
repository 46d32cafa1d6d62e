"""Reranking: does a query put the relevant ones of its own candidates first?

Shapes: Q queries, P candidates of all queries together, D dimensions.
"""

from typing import ClassVar

import numpy as np
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.encoding import Classify, Encode, encode_distinct
from sbert_train.evaluation.metrics import Array, Floats, cosines_of, is_collapsed
from sbert_train.evaluation.relevance import judgements
from sbert_train.evaluation.results import Cosines, TaskResult, Texts
from sbert_train.evaluation.roles import fingerprint, naming_set, require_roles
from sbert_train.evaluation.samples import QuerySample
from sbert_train.evaluation.thresholds import average_precision, cut

DEPTH = 10
"""Ranks that mrr@10 looks at."""


class RerankingTask:
    """Each distinct anchor ranks, by cosine, the candidates that its own rows name: MAP and MRR@10.

    Rows: anchor, positive, and label, 1 where the positive is relevant to the anchor and 0 where it is only a
    candidate, as in question/answer/label sets such as TREC-QA; or anchor, positive and negative (one or several).
    Candidates are distinct texts; one that any row of an anchor calls relevant is relevant to it. Anchors without a
    relevant candidate, or without another, would be the same for every model: they are left out and counted in the
    result's details.

    `map` is the mean of the average precision over the whole list, `mrr@10` of 1 / rank of the first relevant
    candidate, 0 beyond rank 10 (Voorhees 1999). Nobody gains by a tie: candidates of equal cosine enter the average
    precision together, and for the rank the irrelevant ones of them stand first. All candidates are embedded in the
    role positive: a search does not know which of them are negatives.
    """

    kind: ClassVar[str] = "reranking"
    roles: ClassVar[tuple[str, ...]] = ("anchor", "positive")
    primary_metric: ClassVar[str] = "map"
    uses_classifier: ClassVar[bool] = False

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take the rows; DataError if a role is missing, a label is unknown, or no anchor has something to rank."""
        require_roles(rows, self.roles, task=name, kind=self.kind)
        self.name = name
        candidates: dict[str, dict[str, bool]] = {}
        for anchor, text, is_relevant in judgements(rows, task=name):
            own = candidates.setdefault(anchor, {})
            own[text] = own.get(text, False) or is_relevant
        self.without_relevant = sum(not any(own.values()) for own in candidates.values())
        self.without_irrelevant = sum(all(own.values()) for own in candidates.values())
        ranked = {anchor: own for anchor, own in candidates.items() if len(set(own.values())) == 2}
        if not ranked:
            raise DataError(
                f"eval set {name!r}: expected anchors with relevant and irrelevant candidates, found none: of "
                f"{len(candidates):,}, {self.without_relevant:,} have no relevant and {self.without_irrelevant:,} no "
                "irrelevant one; check `where`, the label column and the negatives"
            )
        self.queries = list(ranked)
        self.candidates = [text for own in ranked.values() for text in own]  # (P), query by query
        self.relevant = np.array([label for own in ranked.values() for label in own.values()])
        self.sizes = [len(own) for own in ranked.values()]
        self.fingerprint = fingerprint(self.queries, self.candidates, self.relevant.tolist(), self.sizes)

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Embed, rank and score; EvaluationError, naming the set, if the embeddings can rank nothing."""
        with naming_set(self.name):
            queries = encode_distinct(encode, self.queries, "anchor")
            candidates = encode_distinct(encode, self.candidates, "positive")
            if is_collapsed(candidates):
                raise EvaluationError(
                    f"the model embeds all {len(candidates):,} candidates alike, so it cannot rank them; "
                    "it has collapsed: lower the learning rate or check the pooling"
                )
        query_of = np.repeat(np.arange(len(queries)), self.sizes)
        cosines = cosines_of(queries, candidates, query_of, np.arange(len(candidates)))
        ends = np.cumsum(self.sizes)[:-1]
        lists = list(zip(np.split(cosines, ends), np.split(self.relevant, ends), strict=True))
        values = {
            "map": np.array([average_precision_of(*one) for one in lists]),
            f"mrr@{DEPTH}": np.array([reciprocal_rank_of(*one) for one in lists]),
        }
        return TaskResult(
            task=self.name,
            kind=self.kind,
            metrics={metric: float(value.mean()) for metric, value in values.items()},
            primary_metric=self.primary_metric,
            n=len(self.queries),
            unit="queries",
            details={
                "queries": len(self.queries),
                "candidates": len(self.candidates),
                "queries_without_relevant": self.without_relevant,
                "queries_without_irrelevant": self.without_irrelevant,
            },
            fingerprint=self.fingerprint,
            sample=QuerySample(values),
            cosines=Cosines(cosines[self.relevant], cosines[~self.relevant]),
        )

    def texts_of(self, example: int) -> Texts:
        """A query, its first relevant candidate and its first other one."""
        start = sum(self.sizes[:example])
        own = range(start, start + self.sizes[example])
        relevant = next(i for i in own if self.relevant[i])
        other = next(i for i in own if not self.relevant[i])
        return (
            ("anchor", self.queries[example]),
            ("positive", self.candidates[relevant]),
            ("negative", self.candidates[other]),
        )


def average_precision_of(cosines: Floats, relevant: Array) -> float:
    """Average precision of one query's candidates: cosines (P,) and whether each is relevant (P,) bool."""
    return float(average_precision(cut(cosines, relevant, np.ones((1, len(cosines)))))[0])


def reciprocal_rank_of(cosines: Floats, relevant: Array) -> float:
    """1 / rank of one query's first relevant candidate, 0 beyond DEPTH; irrelevant ones of its cosine stand before."""
    rank = 1 + np.count_nonzero(cosines[~relevant] >= cosines[relevant].max())
    return float(rank <= DEPTH) / rank
