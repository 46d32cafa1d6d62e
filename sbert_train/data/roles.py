"""Which column plays which role: told by the config or by a column's own name, never by its position."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from sbert_train.data.hints import did_you_mean, listed
from sbert_train.data.values import as_list, as_number
from sbert_train.errors import DataError

TEXT_ROLES = ("anchor", "positive", "negative", "sentence1", "sentence2")
ROLES = (*TEXT_ROLES, "score", "label")
NUMBERED_NEGATIVE = re.compile(r"negative_(\d+)")

ColumnsOfRole = str | Sequence[str] | None


def resolve_roles(
    found: Sequence[str], mapped: Mapping[str, ColumnsOfRole], where: Mapping[str, object]
) -> dict[str, tuple[str, ...]]:
    """The columns behind each role.

    A column that bears a role's name plays it without being mapped; `negative`, `negative_1`, `negative_2` … are one
    role together, in this order. What is mapped wins: a role mapped to None is left out, and a column that is mapped to
    a role does not play the one that it is named after besides. A `label` or `score` that `where` compares with a text
    holds no numbers, so it plays its role only when it is mapped.

    Args:
        found: the columns that there are.
        mapped: role -> column, or for `negative` and `score` a list of columns, or None.
        where: column -> the values that it is filtered by.

    Returns:
        role -> its columns, one for every role but `negative` and `score`; in the order of `ROLES`.

    Raises:
        DataError: an unknown role, a mapped column that is not there, no role at all, or the name of a role with white
            space around it, as in `anchor, positive`: to pass over such a column would be to train without it.
    """
    for role in mapped:
        if role not in ROLES:
            raise DataError(
                f"columns: there is no role {role!r}{did_you_mean(role, ROLES)}; roles are {listed(ROLES)}"
            )
    taken = {column for role, columns in mapped.items() for column in mapped_columns(role, columns)}
    roles = {}
    for role in ROLES:
        if role in mapped:
            columns = mapped_columns(role, mapped[role])
            require_columns(columns, found, f"columns: {role}")
        else:
            free = [column for column in found if column not in taken]
            columns = columns_named_after(role, free, where)
        if columns:
            roles[role] = columns
    free = [column for column in found if column not in taken and column not in where]
    if not roles:
        near = near_roles(free, mapped, lambda name: name.strip().lower())
        advice = (
            f"did you mean {as_mapping(near)}?"
            if near
            else "map columns to roles, such as `columns: {anchor: …, positive: …}`;"
        )
        raise DataError(f"no column bears a role's name; {advice} columns found: {listed(found)}")
    if near := near_roles(free, mapped, str.strip):
        raise DataError(
            f"the name of a role has white space around it; did you mean {as_mapping(near)}? (null leaves a role out); "
            f"columns found: {listed(found)}"
        )
    return roles


def near_roles(
    found: Iterable[str], mapped: Collection[str], fold: Callable[[str], str]
) -> dict[str, list[str]]:
    """Role -> the columns that would play it if they were named as `fold` has it, where they do not as they are."""
    near: dict[str, list[str]] = {}
    for column in found:
        role = "negative" if NUMBERED_NEGATIVE.fullmatch(fold(column)) else fold(column)
        if role in ROLES and role not in mapped:
            near.setdefault(role, []).append(column)
    return {
        role: columns if role == "negative" else columns[:1]
        for role, columns in near.items()
        if any(column != fold(column) for column in columns) and (role == "negative" or role not in columns)
    }


def as_mapping(columns: Mapping[str, Sequence[str]]) -> str:
    """What to write in the config, such as `columns: {anchor: "Anchor"}`; quoted as YAML reads any name."""
    pairs = (
        f"{role}: {json.dumps(names[0] if len(names) == 1 else names)}" for role, names in columns.items()
    )
    return f"`columns: {{{', '.join(pairs)}}}`"


def require_columns(columns: Iterable[str], found: Sequence[str], key: str) -> None:
    """Raise a DataError that names the key of the config when one of the columns is not there."""
    for column in columns:
        if column not in found:
            raise DataError(
                f"{key}: there is no column {column!r}{did_you_mean(column, found)}; columns found: {listed(found)}"
            )


def mapped_columns(role: str, columns: ColumnsOfRole) -> tuple[str, ...]:
    """The columns that the config gives a role; only `negative` and `score` take several."""
    several = () if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if len(several) > 1 and role not in ("negative", "score"):
        raise DataError(
            f"columns: {role} takes one column, found {listed(several)}; only negative and score take several"
        )
    return several


def columns_named_after(role: str, found: Sequence[str], where: Mapping[str, object]) -> tuple[str, ...]:
    """The columns that bear the name of a role, and negative_1, negative_2, … in order."""
    if role == "negative":
        numbered = {int(match[1]): name for name in found if (match := NUMBERED_NEGATIVE.fullmatch(name))}
        return (*(name for name in found if name == role), *(numbered[number] for number in sorted(numbered)))
    if role not in found or (role not in TEXT_ROLES and filters_by_text(where.get(role))):
        return ()
    return (role,)


def filters_by_text(wanted: object) -> bool:
    """Whether a `where` compares with something that is no number, so that its column holds no scores or classes."""
    return any(isinstance(value, str) and as_number(value) is None for value in as_list(wanted))
