"""Single values of data and config: when two of them are the same, and which number one of them spells."""

import math
from decimal import Decimal
from typing import Any


def as_list(wanted: Any) -> list[Any]:
    """The values of a `where` entry, which may be one value or a list of them."""
    return list(wanted) if isinstance(wanted, list | tuple) else [wanted]


def equals(value: Any, wanted: Any) -> bool:
    """Whether a value in the data is the one that the config asks for.

    Two texts must be the same text. A text and a number are equal when the text spells the number, since a CSV has
    texts only; null and the empty text are equal for the same reason.

    >>> equals("0", 0), equals(0, "0.0"), equals("001", "1"), equals("", None), equals("True", True)
    (True, True, False, True, True)
    """
    if value is None or wanted is None:
        return value in (None, "") and wanted in (None, "")
    if isinstance(value, str) == isinstance(wanted, str):
        return bool(value == wanted)
    text, other = (value, wanted) if isinstance(value, str) else (wanted, value)
    if isinstance(other, bool):
        return as_truth(text) is other
    return as_number(text) == other if isinstance(other, int | float | Decimal) else text == str(other)


def as_number(value: Any) -> int | float | None:
    """The finite number that a value is or spells, else None; true and false are no numbers."""
    if isinstance(value, str):
        return spelled_number(value)
    if isinstance(value, Decimal):
        value = float(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole or (isinstance(value, float) and math.isfinite(value)) else None


def spelled_number(text: str) -> int | float | None:
    """The number that a text spells, or None."""
    if "_" in text:  # Python reads 1_000 as a number; nobody else does
        return None
    for parse in (int, float):
        try:
            return as_number(parse(text))
        except ValueError:
            continue
    return None


def as_truth(value: Any) -> bool | None:
    """What a value says when it is true or false, or spells one of them in any case; else None."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
