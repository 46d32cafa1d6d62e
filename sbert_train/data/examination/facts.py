"""All that is known of a set before training, in one value."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from sbert_train.data.examination.cached_keys import cached_text_keys
from sbert_train.data.examination.false_negatives import FalseNegatives, count_false_negatives
from sbert_train.data.examination.lengths import SAMPLED_ROWS, Lengths, measure_lengths, spread
from sbert_train.data.examination.overlap import Overlap, overlap
from sbert_train.data.examination.questions import share_of_questions
from sbert_train.data.examination.repeats import Repeats, count_repeats
from sbert_train.data.examination.targets import (
    LabelCount,
    Scores,
    count_labels,
    describe_scores,
    most_frequent,
)
from sbert_train.data.examination.text_keys import TextKeys
from sbert_train.data.roles import TEXT_ROLES
from sbert_train.data.sieve import RowAccount
from sbert_train.data.sources import LoadedSet

SAMPLES = 3
MOST_LABELS = 20
SHOWN_CHARACTERS = 200  # of a text in a sample row


@dataclass(frozen=True)
class SetFacts:
    """A training or an eval set, seen through the roles that are used of it.

    Attributes:
        name: what the configuration calls it.
        key: where it stands in the configuration, such as `data.train.0`.
        account: what became of every row of the source.
        samples: the first row, the last one and one between: role -> text, texts, score or label, and `row`, its
            number in the set from 1.
        repeats: texts and rows that stand in it more than once.
        lengths: role -> tokens of its texts.
        questions: role -> the share of its texts that end in a question mark (0 to 1), of at most SAMPLED_ROWS rows.
        scores: None where no role holds scores.
        labels: how many rows have each label, of the MOST_LABELS most frequent ones; empty where no role holds labels.
        more_labels: how many labels there are besides.
        false_negatives: None where no negatives are pushed apart from their anchors.
        overlaps: of an eval set, with each training set.
    """

    name: str
    key: str
    account: RowAccount
    samples: tuple[Mapping[str, Any], ...]
    repeats: Repeats
    lengths: Mapping[str, Lengths]
    questions: Mapping[str, float]
    scores: Scores | None
    labels: tuple[LabelCount, ...]
    more_labels: int
    false_negatives: FalseNegatives | None
    overlaps: tuple[Overlap, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps; the keys are the attributes, with `set` for `name`."""
        plain = asdict(self)
        return {"set": plain.pop("name"), **plain}


def examine(
    one: LoadedSet,
    key: str,
    roles: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    pushes_apart: bool,
    max_length: int | None,
    prompts: Mapping[str, str],
    score_range: tuple[float, float] | None,
    labels: Sequence[str] | None,
) -> tuple[SetFacts, TextKeys]:
    """The facts of a set, and the keys of its texts.

    Args:
        roles: those of its roles that are used.
        pushes_apart: whether training makes an anchor and its negatives unlike.
        max_length, prompts: as the model has them, for `measure_lengths`.
        score_range, labels: as the configuration has them.
    """
    rows = one.rows
    texts = [role for role in TEXT_ROLES if role in roles]
    keys = cached_text_keys(rows, texts)
    target = next((np.asarray(rows[role][:]) for role in ("score", "label") if role in roles), None)
    every = count_labels(np.asarray(rows["label"][:]), labels) if "label" in roles else ()
    facts = SetFacts(
        name=one.name,
        key=key,
        account=one.account,
        samples=tuple(_sample(one, roles, row) for row in spread(len(rows), SAMPLES)),
        repeats=count_repeats(keys, target),
        lengths=measure_lengths(rows, texts, tokenizer, max_length=max_length, prompts=prompts),
        questions={
            role: share_of_questions(rows.select(spread(len(rows), SAMPLED_ROWS))[role][:])
            for role in texts
            if role != "negative"
        },
        scores=describe_scores(np.asarray(rows["score"][:]), score_range) if "score" in roles else None,
        labels=most_frequent(every, MOST_LABELS),
        more_labels=max(0, len(every) - MOST_LABELS),
        false_negatives=count_false_negatives(keys)
        if pushes_apart and {"anchor", "positive", "negative"} <= set(roles)
        else None,
    )
    return facts, keys


def with_overlaps(evaluated: SetFacts, keys: TextKeys, trained: Mapping[str, TextKeys]) -> SetFacts:
    """The facts of an eval set, with what it has in common with the training sets (name -> keys)."""
    return replace(evaluated, overlaps=tuple(overlap(name, one, keys) for name, one in trained.items()))


def _sample(one: LoadedSet, roles: Sequence[str], row: int) -> dict[str, Any]:
    values = one.rows[row]
    return {"row": row + 1, **{role: _shortened(values[role]) for role in roles}}


def _shortened(value: Any) -> Any:
    if isinstance(value, list):
        return [_shortened(one) for one in value]
    if isinstance(value, str) and len(value) > SHOWN_CHARACTERS:
        return value[: SHOWN_CHARACTERS - 1] + "…"
    return value
