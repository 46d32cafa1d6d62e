"""What a run should perhaps not begin with: each warning names the key of the configuration to change."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sbert_train.data.examination.facts import SetFacts
from sbert_train.data.examination.overlap import Overlap
from sbert_train.data.policy import Problem
from sbert_train.training.examination import Examination

OUT_OF_RANGE = Problem("score_out_of_range", "").reason
REPEATED = 0.05
"""Share of a training set's rows that repeat another, from which it is told."""
CONTRADICTING = 0.01
"""Share of rows with the same texts and another score or label."""
TRUNCATED = 0.1
"""Share of the texts of a role that are cut."""
NEARLY_ALL = 0.95
"""Share of the texts that a suggested length is to hold."""
OUTSIDE = 0.01
"""Share of the scores that lie outside of their range and are not refused."""
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
    yield from _scales(facts)
    yield from _labels(facts)
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
        repeat = "repeats" if repeated == 1 else "repeat"
        yield (
            f"{facts.key}.source",
            f"{_of(repeated, rows, 'rows')} of {facts.name} {repeat} another row (but for case, spacing and "
            "punctuation), so that they weigh more; remove them unless that is meant",
        )
    if repeats.contradicting >= CONTRADICTING * rows and repeats.contradicting:
        what = "score" if facts.scores else "label"
        yield (
            f"{facts.key}.source",
            f"{_of(repeats.contradicting, rows, 'rows')} of {facts.name} have the texts of another row and another "
            f"{what}: no model can learn both; keep one of them, or the mean",
        )


def _scales(facts: SetFacts) -> Iterator[tuple[str, str]]:
    """About the range of the scores: of a training or of an eval set, where it does harm to plots only."""
    scores, key = facts.scores, f"{facts.key}.score_range"
    if scores is None or scores.score_range is None:
        return
    low, high = scores.score_range
    account = facts.account
    kept, dropped = account.kept_with.get(OUT_OF_RANGE, 0), account.dropped.get(OUT_OF_RANGE, 0)
    if kept + dropped >= OUTSIDE * (account.kept + dropped) and kept + dropped:
        became = "; ".join(
            told
            for count, told in (
                (kept, f"{kept:,} were moved to its ends"),
                (dropped, f"{dropped:,} rows were dropped"),
            )
            if count
        )
        yield (
            key,
            f"{_of(kept + dropped, account.kept + dropped, 'scores')} of {facts.name} lie outside of "
            f"[{low:g}, {high:g}] ({became}, as policy has it): name the ends of their scale",
        )
    if scores.looks_misread and scores.guess is not None:
        guessed_low, guessed_high = scores.guess
        yield (
            key,
            f"[{low:g}, {high:g}], but the scores of {facts.name} reach from {scores.lowest:g} to {scores.highest:g} "
            f"only, as on a scale of {guessed_low:g} to {guessed_high:g}: try [{guessed_low:g}, {guessed_high:g}]",
        )


def _labels(facts: SetFacts) -> Iterator[tuple[str, str]]:
    total = facts.account.kept
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
        (found.equal_positive, "the positive"),
        (found.positive_elsewhere, "a positive of the same anchor in another row"),
        (found.equal_anchor, "the anchor"),
    ):
        if count:
            yield (
                f"{facts.key}.columns.negative",
                f"in {_of(count, found.rows, 'rows')} of {facts.name} a negative is {what}, and what is the same is "
                "pushed apart; remove these rows, or take another column",
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
        needed = f"{max(one.most for _, _, one in cut):,}"
        advice = f"with {needed} tokens 95% of them would be, at a price in time and memory, if the model takes so many"
        if any(one.cut_off > 1 - NEARLY_ALL for _, _, one in cut):
            advice = f"{needed} tokens would not do for 95% of them: divide them into passages"
        yield ("model.max_length", f"many texts are longer, and not read to their end ({shares}); {advice}")


def _about_eval_set(facts: SetFacts, examined: Examination) -> Iterator[tuple[str, str]]:
    yield from _scales(facts)
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
        return f"{_of(one.seen_rows, one.rows, 'rows')} {'is' if one.seen_rows == 1 else 'are'}"
    if one.seen_texts >= SEEN_TEXTS * one.texts:
        return f"{_of(one.seen_texts, one.texts, 'texts')} stand"
    return None


def _of(count: int, total: int, what: str) -> str:
    """Such as `8 of 1,500 rows (0.5%)`."""
    return f"{count:,} of {total:,} {what} ({count / total:.1%})"
