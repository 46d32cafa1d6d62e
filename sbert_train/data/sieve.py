"""Rows of a source -> rows of a set: filtered, with every value checked for its role, and every row accounted for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sbert_train.data.complaints import DataErrors, more_files
from sbert_train.data.hints import shown
from sbert_train.data.policy import DROP, KEEP, REFUSE, Policy, Problem, Problems
from sbert_train.data.readers import Chunk
from sbert_train.data.role_values import (
    FirstLabel,
    first_label,
    label_values,
    negative_values,
    score_values,
    text_values,
)
from sbert_train.data.roles import TEXT_ROLES, ColumnsOfRole
from sbert_train.data.values import as_list, equals
from sbert_train.errors import DataError

SHOWN_VALUES = 8

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
        policy: what is done about rows with something wrong in them.
    """

    columns: Mapping[str, ColumnsOfRole] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    score_range: tuple[float, float] | None = None
    limit: int | None = None
    labels: tuple[str, ...] | None = None
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class RowAccount:
    """What became of every row: read = kept + filtered + limited + all that were dropped.

    Attributes:
        read: rows of the source.
        kept: rows of the set.
        filtered: left out by `where`.
        limited: left out by `limit`.
        dropped: reason, such as `empty positive` -> rows that were left out for it.
        kept_with: reason -> rows of the set that have this problem, where the policy is to keep them.
        columns: role -> the columns of the source that play it; not a part of what is compared.
    """

    read: int
    kept: int
    filtered: int
    limited: int
    dropped: Mapping[str, int]
    kept_with: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False)


def describe(name: str, account: RowAccount) -> str:
    """One line, such as `snli: 9,842 rows read, 3,329 kept (6,513 filtered by where)`."""
    left_out = {"filtered by where": account.filtered, "over the limit": account.limited}
    left_out |= {f"dropped: {reason}": number for reason, number in account.dropped.items()}
    parts = "; ".join(f"{number:,} {what}" for what, number in left_out.items() if number)
    kept = f"{account.kept:,} kept" if parts else "all kept"
    rows_read = f"{account.read:,} row{'' if account.read == 1 else 's'} read"
    problems = ", ".join(f"{reason} {number:,}" for reason, number in account.kept_with.items())
    told = "; ".join([*([parts] if parts else []), *([f"kept: {problems}"] if problems else [])])
    return f"{name}: {rows_read}, {kept}" + (f" ({told})" if told else "")


class Sieve:
    """Takes chunks of a source, gives tables of a set, and keeps account of the rows."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._read = self._kept = self._filtered = self._limited = 0
        self._source: str | None = None
        self._read_before = 0  # rows of the sources before this one
        self._counts: dict[str, int] = {}
        self._scores_are_lists: bool | None = None
        self._first_label: FirstLabel | None = None
        self._dropped: Counter[str] = Counter()
        self._kept_with: Counter[str] = Counter()
        self._refused: dict[str, list[Any]] = {}
        self._columns: Mapping[str, Sequence[str]] = {}

    @property
    def account(self) -> RowAccount:
        """The rows so far."""
        return RowAccount(
            self._read,
            self._kept,
            self._filtered,
            self._limited,
            dict(self._dropped),
            dict(self._kept_with),
            {role: list(columns) for role, columns in self._columns.items()},
        )

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
            DataError: values that their roles cannot take, the first one of each kind with its place, unless the policy
                is to drop or keep its row.
        """
        if chunk.source != self._source:
            self._source, self._read_before = chunk.source, self._read
            self._columns = self._columns or roles
        self._read += len(chunk)
        if self._scores_are_lists is None and "score" in roles:
            columns = [chunk.columns[column] for column in roles["score"]]
            self._scores_are_lists = len(columns) > 1 or any(isinstance(one, list) for one in columns[0])
        for column, wanted in self._selection.where.items():
            chunk = self._filter(chunk, column, wanted, class_names.get(column, ()))
        problems: Problems = {}
        values = self._values(chunk, roles, problems)
        rows = self._usable(chunk, problems)
        chosen = {role: [column[row] for row in rows] for role, column in values.items()}
        types = dict(ARROW_TYPES)
        for role in ("negative", "score"):
            if role in roles:
                self._check_counts(chunk, rows, chosen[role], role)
        if "score" in roles and self._scores_are_lists:
            types["score"] = pa.list_(pa.float64())
        elif "score" in roles:
            chosen["score"] = [score for (score,) in chosen["score"]]
        return pa.table({role: pa.array(chosen[role], types[role]) for role in roles})

    def require_rows(self, sources: Sequence[str]) -> None:
        """Raise a DataError that says where the rows of these sources went when none is left after the last chunk."""
        if self._kept:
            return
        if not self._read:
            first, *others = sources
            have = f"{first} and {more_files(len(others))} have" if others else f"{first} has"
            raise DataError(f"{have} columns, but not a single row")
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

    def _values(
        self, chunk: Chunk, roles: Mapping[str, Sequence[str]], problems: Problems
    ) -> dict[str, list[Any]]:
        """Role -> its values, one per row; of what is wrong with a row a lacking label comes first, then its texts."""
        values: dict[str, list[Any]] = {}
        if "label" in roles:
            (column,) = roles["label"]
            self._first_label = self._first_label or first_label(chunk, column)
            names = self._selection.labels
            values["label"] = label_values(chunk, column, names, self._first_label, problems)
        for role, columns in roles.items():
            if role in TEXT_ROLES:
                read = negative_values if role == "negative" else text_values
                values[role] = list(read(chunk, columns, role, problems))
        if "score" in roles:
            values["score"] = score_values(chunk, roles["score"], self._selection.score_range, problems)
        return values

    def _usable(self, chunk: Chunk, problems: Problems) -> list[int]:
        """The rows of the set, by the policy and the limit; of the others each is counted for one reason.

        Raises:
            DataErrors: rows that are refused, the first one of each kind of problem.
        """
        rows: list[int] = []
        refusals: dict[str, str] = {}
        limit = self._selection.limit
        for row in range(len(chunk)):
            has_room = limit is None or self._kept < limit
            kept_with = self._kept_problems(chunk, row, problems, has_room, refusals)
            if kept_with is None:
                continue
            if not has_room:
                self._limited += 1
                continue
            self._kept += 1
            self._kept_with.update(kept_with)
            rows.append(row)
        if refusals:
            raise DataErrors(refusals.values())
        return rows

    def _kept_problems(
        self, chunk: Chunk, row: int, problems: Problems, has_room: bool, refusals: dict[str, str]
    ) -> set[str] | None:
        """With which problems a row is kept; None where it is dropped.

        Args:
            refusals: kind of problem -> why the first row with it is refused; added to. Such a row counts as kept,
                for that it will be once it is corrected.
        """
        kept_with: set[str] = set()
        for problem in problems.get(row, ()):
            choice = self._selection.policy.of(problem.kind)
            if choice == DROP or (choice == KEEP and not problem.can_be_kept):
                self._dropped[problem.reason] += 1
                return None
            if choice == REFUSE and has_room and problem.kind not in refusals:
                refusals[problem.kind] = self._refusal(chunk, row, problem, problems)
            kept_with.add(problem.reason)
        return kept_with

    def _refusal(self, chunk: Chunk, row: int, problem: Problem, problems: Problems) -> str:
        same = sum(any(one.kind == problem.kind for one in several) for several in problems.values())
        read = self._read - self._read_before
        others = f" ({same:,} of the first {read:,} rows have this)" if same > 1 else ""
        return f"{chunk.place(row)}: {problem.words}; correct the row{problem.ways_out}{others}"

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
