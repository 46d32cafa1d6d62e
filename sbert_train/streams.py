"""Standard output and standard error that may go away while a run lasts: a pager that was left, a terminal that was
closed, a log on a disk that is full; and that may lack characters, as data and our own lines have them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO


class _Lasting:
    """A text stream whose errors end nothing: where it cannot be written to, all that comes after is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except UnicodeEncodeError as error:  # what an encoding lacks is written as Python writes it
            self._stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
            return len(text)
        except OSError:
            self._let_go()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._let_go()

    def _let_go(self) -> None:
        """Have the file itself lead nowhere: Python would try once more at its exit, for what is still buffered."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with suppress(OSError, ValueError):  # a stream in memory has no file
            os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_output() -> Iterator[None]:
    """For as long as the block lasts, nothing that is printed raises an OSError."""
    before = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        # A stream is None where it was closed from the beginning.
        lasting: Any = tuple(_Lasting(stream or nowhere) for stream in before)
        sys.stdout, sys.stderr = lasting
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            for stream in lasting:
                with suppress(ValueError):  # it was closed meanwhile
                    stream.flush()


def silently(line: str) -> None:
    """How a line is said where nobody shall hear it: by other processes than the first, or beside JSON."""
