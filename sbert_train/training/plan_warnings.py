"""What a run should perhaps not begin with: each warning names the key of the configuration to change."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sbert_train.data.examination.facts import SetFacts
from sbert_train.data.examination.overlap import Overlap
from sbert_train.training.examination import Examination

REPEATED = 0.05
"""Share of a training set's rows that repeat another, from which it is told."""
CONTRADICTING = 0.01
"""Share of rows with the same texts and another score or label."""
TRUNCATED = 0.1
"""Share of the texts of a role that are cut."""
SEEN_TEXTS = 0.2
"""Share of an eval set's texts that are in training; of pairs, one is too many."""
ONE_LABEL = 0.95
"""Share of the rows that have the most frequent label."""
QUESTIONS, NO_QUESTIONS = 0.5, 0.1
"""Shares of questions among positives and among anchors by which the two seem to be swapped."""


@dataclass(frozen=True)
class PlanWarning:
    """A key of the configuration, and what about it should be looked at."""

    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


def plan_warnings(examined: Examination) -> list[PlanWarning]:
    """All that the sets of a run give reason for."""
    found = [PlanWarning(*one) for facts in examined.train for one in _about_training_set(facts)]
    found += [PlanWarning(*one) for facts in examined.eval for one in _about_eval_set(facts, examined)]
    found += [PlanWarning(*one) for one in _truncated((*examined.train, *examined.eval))]
    if not examined.eval:
        empty = "empty: nothing will tell whether the model got better; name a set that is kept apart"
        found.append(PlanWarning("data.eval", empty))
    return found


def _about_training_set(facts: SetFacts) -> Iterator[tuple[str, str]]:
    yield from _repeats(facts)
    yield from _targets(facts)
    yield from _false_negatives(facts)
    questions = facts.questions
    if questions.get("positive", 0) >= QUESTIONS and questions.get("anchor", 1) <= NO_QUESTIONS:
        yield (
            f"{facts.key}.columns",
            f"{questions['positive']:.0%} of the positives of {facts.name} are questions, and "
            f"{questions['anchor']:.0%} of its anchors: if a question is to find its answer, swap the two columns",
        )


def _repeats(facts: SetFacts) -> Iterator[tuple[str, str]]:
    rows, repeats = facts.account.kept, facts.repeats
    repeated = repeats.rows + repeats.near_rows
    if repeated >= REPEATED * rows:
        yield (
            f"{facts.key}.source",
            f"{_of(repeated, rows, 'rows')} of {facts.name} repeat another row (but for case, spacing and "
            "punctuation), so that they weigh more; remove them unless that is meant",
        )
    if repeats.contradicting >= CONTRADICTING * rows and repeats.contradicting:
        what = "score" if facts.scores else "label"
        yield (
            f"{facts.key}.source",
            f"{_of(repeats.contradicting, rows, 'rows')} of {facts.name} have the texts of another row and another "
            f"{what}: no model can learn both; keep one of them, or the mean",
        )


def _targets(facts: SetFacts) -> Iterator[tuple[str, str]]:
    scores = facts.scores
    if (
        scores is not None
        and scores.looks_misread
        and scores.guess is not None
        and scores.score_range is not None
    ):
        low, high = scores.guess
        yield (
            f"{facts.key}.score_range",
            f"[{scores.score_range[0]:g}, {scores.score_range[1]:g}], but the scores of {facts.name} reach from "
            f"{scores.lowest:g} to {scores.highest:g} only, as on a scale of {low:g} to {high:g}: try "
            f"[{low:g}, {high:g}]",
        )
    total = sum(label.rows for label in facts.labels)
    most = max(facts.labels, key=lambda label: label.rows, default=None)
    if most is not None and most.rows >= ONE_LABEL * total:
        yield (
            f"{facts.key}.where",
            f"{_of(most.rows, total, 'rows')} of {facts.name} have the label {most.name or most.label}: to answer that "
            "for all is nearly always right; choose rows so that the labels are more even",
        )


def _false_negatives(facts: SetFacts) -> Iterator[tuple[str, str]]:
    found = facts.false_negatives
    if found is None:
        return
    for count, what in (
        (found.equal_positive, "a negative that is their positive"),
        (found.positive_elsewhere, "a negative that is a positive of the same anchor in another row"),
        (found.equal_anchor, "a negative that is their anchor"),
    ):
        if count:
            yield (
                f"{facts.key}.columns.negative",
                f"{_of(count, found.rows, 'rows')} of {facts.name} have {what}, and are to push apart what is the "
                "same; remove these rows, or take another column",
            )


def _truncated(sets: Iterable[SetFacts]) -> Iterator[tuple[str, str]]:
    cut = [
        (facts.name, role, one)
        for facts in sets
        for role, one in facts.lengths.items()
        if one.truncated >= TRUNCATED
    ]
    if cut:
        shares = ", ".join(f"{one.truncated:.0%} of {role} in {name}" for name, role, one in cut)
        yield (
            "model.max_length",
            f"many texts are longer, and not read to their end ({shares}); with {max(one.most for _, _, one in cut)} "
            "tokens 95% of them would be, at a price in time and memory, if the model takes so many",
        )


def _about_eval_set(facts: SetFacts, examined: Examination) -> Iterator[tuple[str, str]]:
    for one in facts.overlaps:
        if told := _seen(one):
            (key,) = (trained.key for trained in examined.train if trained.name == one.train)
            yield (
                f"{facts.key}.source",
                f"{told} in training, too, in {one.train}: what it measures is partly memory; remove them from "
                f"{key}.source, or judge by other rows",
            )


def _seen(one: Overlap) -> str | None:
    if one.seen_rows:
        return f"{_of(one.seen_rows, one.rows, 'rows')} are"
    if one.seen_texts >= SEEN_TEXTS * one.texts:
        return f"{_of(one.seen_texts, one.texts, 'texts')} stand"
    return None


def _of(count: int, total: int, what: str) -> str:
    """Such as `8 of 1,500 rows (0.5%)`."""
    return f"{count:,} of {total:,} {what} ({count / total:.1%})"
