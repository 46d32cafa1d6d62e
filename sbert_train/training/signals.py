"""Ctrl-C, SIGTERM and a terminal that is closed: the first ends a run at the end of its step, the second at once."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from sbert_train.errors import Interrupted

NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
_HANG_UP = getattr(signal, "SIGHUP", None)  # not on Windows
if _HANG_UP is not None:
    NAMES[_HANG_UP] = "SIGHUP (its terminal was closed)"


class StopSignals:
    """What to do when the process is told to stop.

    Where nothing is lost by it, `Interrupted` is raised at once. Within `deferred` the first signal is only noted, in
    `requested`, for a place where the run can be left; a second one is not waited for.
    """

    def __init__(self) -> None:
        self.requested: int | None = None
        self._deferring = False
        self._process = os.getpid()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Handle the signals for as long as the block lasts. In a thread, which gets no signals, nothing is done, and
        SIGHUP is left alone where nohup had it ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        ignored = [_HANG_UP] if _HANG_UP and signal.getsignal(_HANG_UP) is signal.SIG_IGN else []
        heard = [number for number in NAMES if number not in ignored]
        before = {number: signal.signal(number, self._handle) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Wait with the first signal; one that found no place to leave is raised at the end of the block."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self.requested is not None:
            raise Interrupted(self.requested, f"stopped by {NAMES[signal.Signals(self.requested)]}")

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if os.getpid() != self._process:
            return _of_a_child(number)
        if number == _HANG_UP == self.requested:
            return None  # a shell sends it as it goes, and the system again when the shell has gone
        name = NAMES[signal.Signals(number)]
        if self._deferring and self.requested is None:
            self.requested = number
            told = f"\n{name}: the run stops at the end of this step; a second one stops it at once\n"
            with suppress(OSError):  # there may be nobody left to be told
                os.write(2, told.encode())  # not print: a signal may come while something is printed
            return None
        raise Interrupted(number, f"stopped by {name}")


def _of_a_child(number: int) -> None:
    """A worker that was forked has our handler: what a terminal sends goes to all, and is for the run to deal with,
    which needs its workers until then; what is sent to the worker ends it."""
    if number == signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
