"""Texts that name a file, a folder or a repository: what none of them can hold."""

from pathlib import Path

LONGEST_NAME = 255  # bytes between two slashes, on every file system that a run is likely to meet
LONGEST_PATH = 4_000


def path_problem(text: str) -> str | None:
    """What was expected of a text that no system takes as a path; None where it may be one.

    >>> path_problem("runs/nli"), path_problem("a\\nb")
    (None, 'expected a name without line breaks and control characters')
    """
    if not text.isprintable():
        return "expected a name without line breaks and control characters"
    parts = [part.encode(errors="replace") for part in text.split("/")]
    if len(text.encode(errors="replace")) > LONGEST_PATH or max(map(len, parts)) > LONGEST_NAME:
        return f"expected a name of at most {LONGEST_NAME} bytes between two slashes"
    return None


def expanded(text: str) -> Path:
    """The path, with the home folder in place of `~`; as in a shell, `~NAME` of nobody here is a name like another."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
