"""All that is wrong with one data set, told at once: a line for each thing, which makes sense by itself."""

from collections.abc import Iterable

from sbert_train.data.hints import printable
from sbert_train.errors import DataError


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
    return tuple(map(printable, error.lines if isinstance(error, DataErrors) else (str(error),)))
