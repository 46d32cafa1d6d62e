"""All that is wrong with one data set, told at once: a line for each thing, which makes sense by itself."""

from collections.abc import Iterable, Sequence

from sbert_train.data.hints import unbroken
from sbert_train.errors import DataError

MOST_LINES = 10  # a screen can hold them beside what is wrong with the rest of a run


class ColumnsError(DataError):
    """The columns of a source do not fit; since they may be the same in many files, the place is told apart.

    Attributes:
        words: what is wrong, without the name of the source.
    """

    def __init__(self, source: str, words: str) -> None:
        self.words = words
        super().__init__(f"{source}: {words}")


class DataErrors(DataError):
    """Several things that are wrong.

    Attributes:
        lines: what each of them is.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


def lines_of(error: DataError) -> tuple[str, ...]:
    """A line for each thing that an error tells; no name of the user's adds one."""
    return tuple(map(unbroken, error.lines if isinstance(error, DataErrors) else (str(error),)))


def of_many_files(errors: Sequence[DataError]) -> DataErrors:
    """What is wrong with several files: the columns that many have alike are one line, and there are not too many."""
    alike: dict[str, list[DataError]] = {}
    for error in errors:
        alike.setdefault(error.words if isinstance(error, ColumnsError) else str(error), []).append(error)
    lines: list[str] = []
    left = 0
    for first, *others in alike.values():
        if len(lines) >= MOST_LINES:
            left += 1 + len(others)
            continue
        likewise = f" (the same in {more_files(len(others))})" if others else ""
        lines.extend(line + likewise for line in lines_of(first))
    if left:
        lines.append(f"something is wrong with {more_files(left)}")
    return DataErrors(lines)


def more_files(count: int) -> str:
    """`1 more file`, `2 more files`."""
    return f"{count:,} more file{'' if count == 1 else 's'}"
