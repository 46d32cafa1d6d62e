"""When this process began, but for the start of Python itself: the package imports this first."""

import time

_STARTED = time.perf_counter()


def seconds_since_start() -> float:
    """Of this process."""
    return time.perf_counter() - _STARTED
