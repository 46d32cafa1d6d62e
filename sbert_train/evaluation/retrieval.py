"""Retrieval: does a query find its relevant texts first among all the texts of the corpus?

Shapes: Q queries, C corpus texts, D dimensions, K ranks.
"""

from typing import ClassVar

import numpy as np
from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError
from sbert_train.evaluation.encoding import Classify, Encode, encode_distinct
from sbert_train.evaluation.metrics import (
    RANKING_METRICS,
    Array,
    Floats,
    cosines_of,
    is_collapsed,
    ranking_values,
)
from sbert_train.evaluation.nearest import nearest
from sbert_train.evaluation.relevance import judgements
from sbert_train.evaluation.results import Cosines, TaskResult, Texts
from sbert_train.evaluation.roles import fingerprint, naming_set, require_roles
from sbert_train.evaluation.samples import QuerySample


class RetrievalTask:
    """Each distinct anchor searches, by cosine, the corpus of all distinct positives and negatives.

    Rows: anchor and positive; optionally negative (texts that join the corpus as distractors); optionally
    label, which then says whether the positive is relevant (1) or is only a distractor (0), as in
    question/answer/label sets such as TREC-QA. A text that one row calls relevant to an anchor is
    relevant to it, whatever other rows say. Anchors without any relevant text are left out and counted
    in the result's details. Unlike the answer-selection figures of the TREC-QA literature, which rank
    only a question's own candidates, every question searches the answers of all.

    The metrics are those of metrics.RANKING_METRICS, each a mean over queries. Texts of equal cosine are
    ranked in the order in which they first occur in the rows. The whole corpus is embedded in the role
    positive: a search does not know which of its texts are negatives.
    """

    kind: ClassVar[str] = "retrieval"
    roles: ClassVar[tuple[str, ...]] = ("anchor", "positive")
    primary_metric: ClassVar[str] = "ndcg@10"
    uses_classifier: ClassVar[bool] = False

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take the rows; DataError if a role is missing, a label is unknown, or nothing can be ranked."""
        require_roles(rows, self.roles, task=name, kind=self.kind)
        self.name = name
        corpus: dict[str, int] = {}
        relevant: dict[str, set[int]] = {}
        for anchor, text, is_relevant in judgements(rows, task=name):
            found = relevant.setdefault(anchor, set())
            position = corpus.setdefault(text, len(corpus))
            if is_relevant:
                found.add(position)
        self.corpus = list(corpus)
        self.queries = [query for query, found in relevant.items() if found]
        self.without_relevant = len(relevant) - len(self.queries)
        if not self.queries:
            raise DataError(
                f"eval set {name!r}: none of {len(relevant):,} anchors has a relevant text; "
                "expected rows with label 1: check `where` and the label column"
            )
        if len(self.corpus) < 2:
            raise DataError(
                f"eval set {name!r}: expected a corpus of at least 2 different texts, found 1; "
                "every model would find it: add rows or negatives"
            )
        self.relevant = [sorted(relevant[query]) for query in self.queries]
        self.fingerprint = fingerprint(self.queries, self.corpus, self.relevant)

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Embed, search and score; EvaluationError, naming the set, if the embeddings can rank nothing."""
        with naming_set(self.name):
            queries = encode_distinct(encode, self.queries, "anchor")
            corpus = encode_distinct(encode, self.corpus, "positive")
            if is_collapsed(corpus):
                raise EvaluationError(
                    f"the model embeds all {len(corpus):,} texts of the corpus alike, so it cannot rank "
                    "them; it has collapsed: lower the learning rate or check the pooling"
                )
        ranking, cosines = nearest(queries, corpus, max(k for _, k in RANKING_METRICS.values()))
        hits = self._hits(ranking)
        values = ranking_values(hits, np.array([len(found) for found in self.relevant]))
        return TaskResult(
            task=self.name,
            kind=self.kind,
            metrics={metric: float(value.mean()) for metric, value in values.items()},
            primary_metric=self.primary_metric,
            n=len(self.queries),
            unit="queries",
            details={
                "queries": len(self.queries),
                "corpus": len(self.corpus),
                "queries_without_relevant": self.without_relevant,
            },
            fingerprint=self.fingerprint,
            sample=QuerySample(values),
            cosines=Cosines(self._nearest_relevant(queries, corpus), _nearest_others(hits, cosines)),
        )

    def texts_of(self, example: int) -> Texts:
        """A query and its first relevant text."""
        return ("anchor", self.queries[example]), ("positive", self.corpus[self.relevant[example][0]])

    def _nearest_relevant(self, queries: Array, corpus: Array) -> Floats:
        """The cosine of each query with its nearest relevant text, (Q,)."""
        counts = [len(found) for found in self.relevant]
        query_of = np.repeat(np.arange(len(queries)), counts)
        every = cosines_of(queries, corpus, query_of, np.concatenate(self.relevant))
        found: Floats = np.maximum.reduceat(every, np.cumsum([0, *counts[:-1]]))
        return found

    def _hits(self, ranking: Array) -> Array:
        """Whether each ranked text (Q, K) is relevant to its query, (Q, K) bool."""
        # One number per (query, text): membership for all queries is then one look-up in a flat list.
        size = len(self.corpus)
        keys = [query * size + text for query, found in enumerate(self.relevant) for text in found]
        return np.isin(ranking + np.arange(len(ranking))[:, None] * size, keys)


def _nearest_others(hits: Array, cosines: Array) -> Floats:
    """The cosine of each query with its nearest text that is not relevant, of the ranks that were looked at."""
    has_other = ~hits.all(axis=1)
    first = hits.argmin(axis=1)[:, None]
    found: Floats = np.take_along_axis(cosines, first, axis=1)[has_other, 0].astype(np.float64)
    return found
