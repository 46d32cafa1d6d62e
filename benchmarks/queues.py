"""One queue at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_queue(output: Path) -> Iterator[None]:
    """Hold the folder of results; two queues in it would do the same runs and take each other's time."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / "queue.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(
                f"a queue is at work in {output}; wait for it, or choose another --output"
            ) from None
        yield
