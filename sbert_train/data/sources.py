"""From what the config says about a data set to its rows: find the source, read it, keep what the roles need."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from sbert_train.data.cache import cached_rows
from sbert_train.data.complaints import ColumnsError, lines_of, of_many_files
from sbert_train.data.hints import listed, unbroken
from sbert_train.data.locate import DEFAULT_SPLIT, find
from sbert_train.data.policy import Policy
from sbert_train.data.readers import RowSource
from sbert_train.data.roles import ColumnsOfRole, require_columns, resolve_roles
from sbert_train.data.sieve import RowAccount, Selection, Sieve
from sbert_train.data.values import as_list
from sbert_train.errors import DataError
from sbert_train.paths import path_problem

OpenSource = Callable[[], RowSource]
FirstRoles = tuple[str, Sequence[str]]  # the name of the first source of a set, and its roles


@dataclass(frozen=True)
class LoadedSet:
    """A data set in roles.

    Attributes:
        name: what the config calls it.
        rows: columns `anchor`, `positive`, `sentence1`, `sentence2`: string; `negative`: list of K strings, the same
            K for every row; `score`: float64, or a list of them, in [0, 1] if the set has a score_range; `label`:
            int64. Only those of roles that the source has. Memory-mapped from the cache.
        account: what became of every row of the source.
    """

    name: str
    rows: datasets.Dataset
    account: RowAccount


def load_set(
    name: str,
    source: str,
    *,
    subset: str | None = None,
    split: str = DEFAULT_SPLIT,
    columns: Mapping[str, ColumnsOfRole] | None = None,
    where: Mapping[str, Any] | None = None,
    score_range: Sequence[float] | None = None,
    limit: int | None = None,
    labels: Sequence[str] | None = None,
    policy: Mapping[str, str] | None = None,
    cache_dir: Path | None = None,
) -> LoadedSet:
    """Read a data set, keep the rows and columns that are asked for, and account for the rest.

    What was read is cached by the content of the source, so that a second run does not parse it again.

    Args:
        name: what messages call the set.
        source: `organisation/name` on the Hub; a path or a glob of .csv, .tsv, .json, .jsonl or .parquet files, all of
            one format; or `builtin:contrast`.
        subset: configuration of a Hub data set.
        split: of a Hub data set, also a slice such as `train[:1000]`; of a builtin set `train`, `validation` or
            `test`. Files are one split, so it stays `train` for them.
        columns: role -> column (negative: also a list of columns); see `resolve_roles` for the roles not mentioned.
        where: column -> value or list of values; a row is kept when it has one of the values in each column.
        score_range: [low, high] of the scores, mapped to [0, 1].
        limit: keep the first n rows of those that are left.
        labels: names of the classes of a label column that holds text; the first is class 0.
        policy: kind of problem -> refuse, drop or keep; see `Policy`, whose defaults hold for what is not mentioned.
        cache_dir: the folder of the cache; None for that of `datasets`.

    Raises:
        DataError: a line for each thing that is wrong; it names the set, the place, what was expected and what was
            found.
    """
    try:
        if problem := path_problem(source):
            raise DataError(f"{source[:60]!r}: {problem}")
        selection = checked_selection(columns, where, score_range, limit, labels, policy)
        origin = find(source, subset, split, cache_dir)
        rows, account = cached_rows(
            cache_dir,
            [origin.identity, asdict(selection)],
            lambda path: write_rows(origin.sources, selection, path),
        )
    except DataError as error:
        raise DataError(
            "\n".join(f"data set {unbroken(name)}: {line}" for line in lines_of(error))
        ) from error
    return LoadedSet(name, rows, account)


def checked_selection(
    columns: Mapping[str, ColumnsOfRole] | None,
    where: Mapping[str, Any] | None,
    score_range: Sequence[float] | None,
    limit: int | None,
    labels: Sequence[str] | None,
    policy: Mapping[str, str] | None,
) -> Selection:
    """The selection that these keys of the config ask for; raises DataError where they contradict themselves."""
    if limit is not None and limit < 1:
        raise DataError(f"limit: expected a number of rows from 1, found {limit}")
    scale = None
    if score_range is not None:
        low, high = scale = (score_range[0], score_range[1])
        if not low < high:
            raise DataError(f"score_range: expected [low, high] with low < high, found [{low:g}, {high:g}]")
    names = None if labels is None else tuple(labels)
    try:
        chosen = Policy(**(policy or {}))
    except (TypeError, ValueError) as problem:
        raise DataError(f"policy: {problem}") from problem
    return Selection(dict(columns or {}), dict(where or {}), scale, limit, names, chosen)


def write_rows(sources: Iterable[OpenSource], selection: Selection, path: Path) -> RowAccount:
    """Write the rows of a set to an Arrow stream, a chunk at a time, and account for those of its sources.

    Raises:
        DataError: values that their roles cannot take, sources that cannot be read or differ in their roles, or no row
            left.
    """
    sieve = Sieve(selection)
    tables = role_tables(sources, sieve, selection)
    first = next(tables, None)
    if first is not None:
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, first.schema) as stream:
            for table in chain([first], tables):
                stream.write_table(table)
    return sieve.account


def role_tables(sources: Iterable[OpenSource], sieve: Sieve, selection: Selection) -> Iterator[pa.Table]:
    """Tables with the same roles from every source; a DataError behind the last one where they hold no row.

    Once something is wrong with one, the others are looked at only for what is wrong with them.
    """
    first: FirstRoles | None = None
    names: list[str] = []
    errors: list[DataError] = []
    for open_source in sources:
        try:
            source = open_source()
            names.append(source.name)
            roles = roles_of(source, selection, first)
            first = first or (source.name, list(roles))
            wanted = dict.fromkeys([*chain.from_iterable(roles.values()), *selection.where])
            for chunk in source.chunks(list(wanted)):
                table = sieve.take(chunk, roles, source.class_names)
                if not errors:
                    yield table
        except DataError as error:
            errors.append(error)
            if selection.limit is not None:
                break  # how many rows of the others belong to the set depends on this one
    if errors:
        raise of_many_files(errors) from errors[0]
    sieve.require_rows(names)


def roles_of(source: RowSource, selection: Selection, first: FirstRoles | None) -> dict[str, tuple[str, ...]]:
    """Role -> columns of a source; raises ColumnsError where they are not what the set asks for."""
    named = {*chain.from_iterable(map(as_list, selection.columns.values())), *selection.where}
    if source.doubt and source.columns[0] not in named:
        raise ColumnsError(
            source.name,
            f"{source.doubt}; if {source.columns[0]!r} is one column indeed, map it under `columns`",
        )
    # A column `label` of texts that `where` chooses from is no class, unless the classes are named.
    where = {c: v for c, v in selection.where.items() if not (selection.labels and c == "label")}
    try:
        roles = resolve_roles(source.columns, selection.columns, where)
        require_columns(selection.where, source.columns, "where")
    except DataError as error:
        raise ColumnsError(source.name, str(error)) from error
    for key, role in (("score_range", "score"), ("labels", "label")):
        if getattr(selection, key) is not None and role not in roles:
            raise ColumnsError(
                source.name, f"{key}: there is no column for the role {role}; map one or leave {key} out"
            )
    if first is not None and list(roles) != first[1]:
        raise ColumnsError(
            source.name,
            f"its columns are for the roles {listed(roles)}, those of {first[0]} for {listed(first[1])}; "
            "the files of one set must have the same",
        )
    return roles
