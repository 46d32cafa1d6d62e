"""Rows of a source -> rows of a set: filtered, with every value checked for its role, and every row accounted for."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sbert_train.data.hints import listed, shown
from sbert_train.data.readers import Chunk
from sbert_train.data.roles import TEXT_ROLES, ColumnsOfRole
from sbert_train.data.values import as_list, as_number, as_truth, equals
from sbert_train.errors import DataError

SHOWN_VALUES = 8
UNLABELLED = -1  # how SNLI and many sets after it mark a pair on which the annotators did not agree

ARROW_TYPES = {
    **dict.fromkeys(TEXT_ROLES, pa.string()),
    "negative": pa.list_(pa.string()),
    "score": pa.float64(),
    "label": pa.int64(),
}


@dataclass(frozen=True)
class Selection:
    """What a set takes from its source.

    Attributes:
        columns: role -> column, list of columns (negative) or None, as `resolve_roles` takes it.
        where: column -> the value, or the list of values, that a row must have there.
        score_range: (low, high), the scale of the scores, mapped to [0, 1]; None leaves them as they are.
        limit: how many rows to keep at most, the first ones.
        labels: names of the classes of a label column that holds text; the first is class 0. None: it holds numbers.
    """

    columns: Mapping[str, ColumnsOfRole] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    score_range: tuple[float, float] | None = None
    limit: int | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RowAccount:
    """What became of every row: read = kept + filtered + limited + all that were dropped.

    Attributes:
        read: rows of the source.
        kept: rows of the set.
        filtered: left out by `where`.
        limited: left out by `limit`.
        dropped: reason -> rows that cannot be trained on: `empty text`, `unlabelled`.
    """

    read: int
    kept: int
    filtered: int
    limited: int
    dropped: Mapping[str, int]


def describe(name: str, account: RowAccount) -> str:
    """One line, such as `snli: 9,842 rows read, 3,329 kept (6,513 filtered by where)`."""
    left_out = {"filtered by where": account.filtered, "over the limit": account.limited}
    left_out |= {f"dropped: {reason}": number for reason, number in account.dropped.items()}
    parts = "; ".join(f"{number:,} {what}" for what, number in left_out.items() if number)
    kept = f"{account.kept:,} kept" if parts else "all kept"
    rows_read = f"{account.read:,} row{'' if account.read == 1 else 's'} read"
    return f"{name}: {rows_read}, {kept}" + (f" ({parts})" if parts else "")


class Sieve:
    """Takes chunks of a source, gives tables of a set, and keeps account of the rows."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._read = self._kept = self._filtered = self._limited = 0
        self._counts: dict[str, int] = {}
        self._scores_are_lists: bool | None = None
        self._dropped: Counter[str] = Counter()
        self._refused: dict[str, list[Any]] = {}

    @property
    def account(self) -> RowAccount:
        """The rows so far."""
        return RowAccount(self._read, self._kept, self._filtered, self._limited, dict(self._dropped))

    def take(
        self, chunk: Chunk, roles: Mapping[str, Sequence[str]], class_names: Mapping[str, Sequence[str]]
    ) -> pa.Table:
        """The rows of the chunk that belong to the set, one column per role.

        Args:
            chunk: rows of the source with the columns of the roles and of `where`.
            roles: role -> columns.
            class_names: column -> names of the classes that it holds as numbers; `where` may use them.

        Returns:
            `anchor`, `positive`, `sentence1`, `sentence2`: string; `negative`: list of K strings; `score`: float64, or
            a list of S of them where several columns, or lists, hold it; `label`: int64.

        Raises:
            DataError: a value that its role cannot take, with its place.
        """
        self._read += len(chunk)
        if self._scores_are_lists is None and "score" in roles:
            columns = [chunk.columns[column] for column in roles["score"]]
            self._scores_are_lists = len(columns) > 1 or any(isinstance(one, list) for one in columns[0])
        for column, wanted in self._selection.where.items():
            chunk = self._filter(chunk, column, wanted, class_names.get(column, ()))
        values = {
            role: READ_TEXTS[role](chunk, columns, role)
            for role, columns in roles.items()
            if role in READ_TEXTS
        }
        if "label" in roles:
            (column,) = roles["label"]
            values["label"] = [self._label(chunk, row, column) for row in range(len(chunk))]
        rows = self._limit(self._usable(values, len(chunk)))
        chosen = {role: [column[row] for row in rows] for role, column in values.items()}
        types = dict(ARROW_TYPES)
        if "negative" in roles:
            self._check_counts(chunk, rows, chosen["negative"], "negative")
        if "score" in roles and self._scores_are_lists:
            types["score"] = pa.list_(pa.float64())
            chosen["score"] = [self._scores(chunk, row, roles["score"]) for row in rows]
            self._check_counts(chunk, rows, chosen["score"], "score")
        elif "score" in roles:
            (column,) = roles["score"]
            chosen["score"] = [self._score(chunk, row, column, chunk.columns[column][row]) for row in rows]
        return pa.table({role: pa.array(chosen[role], types[role]) for role in roles})

    def require_rows(self) -> None:
        """Raise a DataError that says where the rows went when none is left after the last chunk."""
        if self._kept:
            return
        if not self._read:
            raise DataError("the source has columns, but not a single row")
        found = "; ".join(
            f"where: {column} must be {shown(wanted)} and was {', '.join(map(shown, self._refused[column]))}"
            for column, wanted in self._selection.where.items()
            if self._refused.get(column)
        )
        raise DataError(describe("no row is left", self.account) + (f"; {found}" if found else ""))

    def _filter(self, chunk: Chunk, column: str, wanted: Any, names: Sequence[str]) -> Chunk:
        options = as_list(wanted)
        options += [names.index(option) for option in options if option in names]
        verdicts: dict[tuple[type, Any], bool] = {}
        mask = []
        for row, value in enumerate(chunk.columns[column]):
            if isinstance(value, list | dict):
                raise DataError(
                    f"where: {column} must hold single values; {chunk.place(row)} has {shown(value)}"
                )
            key = (type(value), value)
            if key not in verdicts:
                verdicts[key] = any(equals(value, option) for option in options)
            mask.append(verdicts[key])
        refused = self._refused.setdefault(column, [])
        refused.extend(value for (_, value), fits in verdicts.items() if not fits and value not in refused)
        del refused[SHOWN_VALUES:]
        passed = chunk.only(mask)
        self._filtered += len(chunk) - len(passed)
        return passed

    def _usable(self, values: Mapping[str, list[Any]], count: int) -> list[int]:
        """The rows that can be trained on; the others are dropped and counted, each for one reason."""
        unlabelled = {row for row, label in enumerate(values.get("label", ())) if label is None}
        texts = [column for role, column in values.items() if role in TEXT_ROLES]
        empty = {row for column in texts for row, text in enumerate(column) if is_empty(text)} - unlabelled
        for reason, rows in {"unlabelled": unlabelled, "empty text": empty}.items():
            if rows:
                self._dropped[reason] += len(rows)
        return [row for row in range(count) if row not in unlabelled and row not in empty]

    def _limit(self, rows: list[int]) -> list[int]:
        room = len(rows) if self._selection.limit is None else self._selection.limit - self._kept
        taken = rows[:room]
        self._kept += len(taken)
        self._limited += len(rows) - len(taken)
        return taken

    def _label(self, chunk: Chunk, row: int, column: str) -> int | None:
        """A class as an integer; None where there is none, or -1."""
        value = chunk.columns[column][row]
        if value is None or value == "":
            return None
        names = self._selection.labels
        if names is not None:
            if value not in names:
                expected = f"one of the names in `labels`, {listed(names)} (choose rows by `where`)"
                raise not_for_role(chunk, row, column, "label", expected, value)
            return names.index(value)
        truth = as_truth(value)
        number = as_number(value) if truth is None else int(truth)
        if number is None or number != int(number):
            expected = (
                "a whole number (name classes in words by `labels`, or leave the column out by `label: null`)"
            )
            raise not_for_role(chunk, row, column, "label", expected, value)
        return None if number == UNLABELLED else int(number)

    def _scores(self, chunk: Chunk, row: int, columns: Sequence[str]) -> list[float]:
        """The scores of one row, of all their columns; a column may hold lists itself."""
        values = [(column, chunk.columns[column][row]) for column in columns]
        lists = [(column, value if isinstance(value, list) else [value]) for column, value in values]
        return [self._score(chunk, row, column, one) for column, several in lists for one in several]

    def _score(self, chunk: Chunk, row: int, column: str, value: Any) -> float:
        """One score, mapped from score_range to [0, 1] where that is given."""
        number = as_number(value)
        if number is None:
            raise not_for_role(chunk, row, column, "score", "a finite number", value)
        if self._selection.score_range is None:
            return float(number)
        low, high = self._selection.score_range
        if not low <= number <= high:
            raise DataError(
                f"{chunk.place(row)}: score {shown(value)} is outside score_range [{low:g}, {high:g}]; "
                "correct the row or widen score_range"
            )
        return float((number - low) / (high - low))

    def _check_counts(
        self, chunk: Chunk, rows: Sequence[int], lists: Sequence[Sequence[Any]], role: str
    ) -> None:
        for row, values in zip(rows, lists, strict=True):
            count = self._counts.setdefault(role, len(values))
            if len(values) != count:
                raise DataError(
                    f"{chunk.place(row)}: expected {count} {role}s as in the rows before, found {len(values)}; "
                    "every row needs the same number"
                )


def text_values(chunk: Chunk, columns: Sequence[str], role: str) -> list[str | None]:
    """The texts of one column; None where there is none."""
    (column,) = columns
    for row, value in enumerate(chunk.columns[column]):
        if value is not None and not isinstance(value, str):
            raise not_for_role(chunk, row, column, role, "a text", value)
    return list(chunk.columns[column])


def negative_values(chunk: Chunk, columns: Sequence[str], role: str) -> list[list[str | None]]:
    """The texts of all columns of negatives, one list per row; a column may hold lists itself."""
    lists: list[list[str | None]] = [[] for _ in range(len(chunk))]
    for column in columns:
        for row, value in enumerate(chunk.columns[column]):
            texts = value if isinstance(value, list) else [value]
            if not all(isinstance(text, str | None) for text in texts):
                raise not_for_role(chunk, row, column, role, "a text or a list of texts", value)
            lists[row].extend(texts)
    return lists


def not_for_role(chunk: Chunk, row: int, column: str, role: str, expected: str, value: Any) -> DataError:
    """The error of a value that its role cannot take."""
    return DataError(f"{chunk.place(row)}: {role} needs {expected}, column {column!r} has {shown(value)}")


def is_empty(text: str | Sequence[str | None] | None) -> bool:
    """Whether there is nothing to read: no text, white space only, or one such among several."""
    if text is None or isinstance(text, str):
        return not (text and text.strip())
    return not text or any(is_empty(one) for one in text)


READ_TEXTS: dict[str, Callable[[Chunk, Sequence[str], str], list[Any]]] = {
    **dict.fromkeys(TEXT_ROLES, text_values),
    "negative": negative_values,
}
