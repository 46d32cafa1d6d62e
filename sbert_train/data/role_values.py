"""The columns of a chunk -> the values of a role, each checked; what is wrong is noted, not raised."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sbert_train.data.hints import listed, shown
from sbert_train.data.policy import Problems, note, note_empty
from sbert_train.data.readers import Chunk
from sbert_train.data.values import as_number, as_truth

UNLABELLED = -1  # how SNLI and many sets after it mark a pair on which the annotators did not agree
LARGEST_LABEL = 2**63 - 1  # what 64 bits hold


def text_values(chunk: Chunk, columns: Sequence[str], role: str, problems: Problems) -> list[str]:
    """The texts of one column; empty where there is none."""
    (column,) = columns
    texts = []
    for row, value in enumerate(chunk.columns[column]):
        text = value if isinstance(value, str) else ""
        if value is not None and not isinstance(value, str):
            note(problems, row, "wrong_text", unfit(role, "a text", column, value))
        elif is_empty(text):
            note_empty(problems, row, role, unfit(role, "a text", column, value))
        texts.append(text)
    return texts


def negative_values(chunk: Chunk, columns: Sequence[str], role: str, problems: Problems) -> list[list[str]]:
    """The texts of all columns of negatives, one list per row; a column may hold lists itself."""
    lists: list[list[str]] = [[] for _ in range(len(chunk))]
    for column in columns:
        for row, value in enumerate(chunk.columns[column]):
            texts = value if isinstance(value, list) else [value]
            if not all(isinstance(text, str | None) for text in texts):
                note(problems, row, "wrong_text", unfit(role, "a text or a list of texts", column, value))
            elif not texts or any(is_empty(text) for text in texts):
                words = unfit(role, "a text or a list of texts", column, value)
                note_empty(problems, row, role, words, can_be_kept=bool(texts))
            lists[row].extend(text if isinstance(text, str) else "" for text in texts)
    return lists


@dataclass(frozen=True)
class FirstLabel:
    """The first label of a set, which says what kind of labels the others are.

    Attributes:
        kind: a number, true or false, or a word.
        words: what it is and where it stands, as a message quotes it.
    """

    kind: str
    words: str


def first_label(chunk: Chunk, column: str) -> FirstLabel | None:
    """The first of a chunk; None where there is none."""
    for row, value in enumerate(chunk.columns[column]):
        if not (value is None or value == ""):
            return FirstLabel(kind_of_label(value), f"{shown(value)} in {chunk.unit} {chunk.numbers[row]}")
    return None


def kind_of_label(value: Any) -> str:
    """How a label is written: one kind is expected of a whole column."""
    if as_truth(value) is not None:
        return "true or false"
    return "a word" if as_number(value) is None else "a number"


def label_values(
    chunk: Chunk, column: str, names: Sequence[str] | None, first: FirstLabel | None, problems: Problems
) -> list[int]:
    """The classes of one column as integers; -1 where there is none.

    Args:
        names: of the classes, where the column holds words; the first is class 0.
        first: the first label of the set.
    """
    found = []
    for row, value in enumerate(chunk.columns[column]):
        label = UNLABELLED
        if value is None or value == "":
            note(problems, row, "unlabelled", f"label needs a class, column {column!r} has {shown(value)}")
        elif names is not None:
            label = _named_label(value, column, names, first, row, problems)
        else:
            label = _numbered_label(value, column, first, row, problems)
        found.append(label)
    return found


def _named_label(
    value: Any,
    column: str,
    names: Sequence[str],
    first: FirstLabel | None,
    row: int,
    problems: Problems,
) -> int:
    if value in names:
        return names.index(value)
    expected = f"one of the names in `labels`, {listed(names)} (choose rows by `where`)"
    note(problems, row, "wrong_label", unfit("label", expected, column, value) + _differs(value, first))
    return UNLABELLED


def _numbered_label(value: Any, column: str, first: FirstLabel | None, row: int, problems: Problems) -> int:
    truth = as_truth(value)
    number = as_number(value) if truth is None else int(truth)
    if number is None or number != int(number) or abs(number) > LARGEST_LABEL:
        expected = (
            "a whole number (name classes in words by `labels`, or leave the column out by `label: null`)"
        )
        note(problems, row, "wrong_label", unfit("label", expected, column, value) + _differs(value, first))
        return UNLABELLED
    if number == UNLABELLED:
        note(problems, row, "unlabelled", f"label needs a class, column {column!r} has {shown(value)}")
    elif _differs(value, first) and first is not None and first.kind != "a word":
        words = unfit("label", "labels of one kind", column, value) + _differs(value, first)
        note(problems, row, "mixed_labels", words)
    return int(number)


def _differs(value: Any, first: FirstLabel | None) -> str:
    """What went before, where that was of another kind."""
    return "" if first is None or kind_of_label(value) == first.kind else f" after {first.words}"


def score_values(
    chunk: Chunk,
    columns: Sequence[str],
    scale: tuple[float, float] | None,
    problems: Problems,
) -> list[list[float]]:
    """The scores of all columns of scores, one list per row, mapped from their scale to [0, 1] where it is given.

    A column may hold lists itself. What is outside of the scale becomes the end of it that it is beyond.
    """
    lists: list[list[float]] = [[] for _ in range(len(chunk))]
    for column in columns:
        for row, value in enumerate(chunk.columns[column]):
            for one in value if isinstance(value, list) else [value]:
                lists[row].append(_score(one, column, scale, row, problems))
    return lists


def _score(value: Any, column: str, scale: tuple[float, float] | None, row: int, problems: Problems) -> float:
    number = as_number(value)
    if number is None or abs(number) > sys.float_info.max:
        note(problems, row, "wrong_score", unfit("score", "a finite number", column, value))
        return 0.0
    if scale is None:
        return float(number)
    low, high = scale
    if not low <= number <= high:
        words = f"score {shown(value)} is outside score_range [{low:g}, {high:g}] (widen it, if the score is right)"
        note(problems, row, "score_out_of_range", words)
    return float((min(max(number, low), high) - low) / (high - low))


def unfit(role: str, expected: str, column: str, value: Any) -> str:
    """What a role needs, and what it was given."""
    return f"{role} needs {expected}, column {column!r} has {shown(value)}"


def is_empty(text: str | None) -> bool:
    """Whether there is nothing to read: no text, or white space only."""
    return not text or text.isspace()
