"""Words for error messages: short lists of what was found, and the name that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def listed(names: Iterable[str], most: int = 12) -> str:
    """`'a', 'b' and 3 more`, or `none`."""
    every = [repr(name) for name in names]
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest or "none"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'score'?)` when one of the known names is close to the word, else nothing."""
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def shown(value: Any, most: int = 60) -> str:
    """A value as Python writes it, cut where it would make the message unreadable."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def as_mapped(score: float) -> str:
    """A note that a score is not as its file has it, where `score_range` may have mapped it: rows hold what it makes of
    the scores, and not the scale itself."""
    return " (as `score_range` maps it to 0..1, if it is set)" if 0 <= score <= 1 else ""


def one_line(problem: Exception, most: int = 300) -> str:
    """What a library says, which may be of several lines."""
    return " ".join(str(problem).split())[:most]


def unbroken(text: str) -> str:
    """A message of one line, whatever name of the user's stands in it; our errors see to other control characters.

    >>> unbroken("column a\\nb")
    'column a\\\\nb'
    """
    return text.replace("\n", "\\n")
