"""Memory that a process holds, now and at most, and how much it may hold."""

import re
import sys
from pathlib import Path

import torch

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_AVAILABLE = Path("/proc/meminfo")
_LIMITS = tuple(map(Path, ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")))


class MemoryMeter:
    """From now on, the most memory that is held: on the GPU what torch allocates, else what resides in memory.

    Linux is asked to forget the highest mark so far (clear_refs), as loading a model may hold more than training; where
    it does not, the mark is that of the whole process.
    """

    def __init__(self, *, cuda: bool | None = None) -> None:
        """Begin.

        Args:
            cuda: whether to look at the GPU; None: where there is one.
        """
        self._cuda = torch.cuda.is_available() if cuda is None else cuda
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
            self.base = int(torch.cuda.memory_allocated())
        else:
            _forget_highest()
            self.base = _status("VmRSS") or _highest()

    def peak(self) -> int:
        """In bytes; 0 where the system does not tell."""
        if self._cuda:
            return int(torch.cuda.max_memory_allocated())
        return _status("VmHWM") or _highest()


def memory_limit(device: torch.device) -> int | None:
    """What this process may hold in bytes, with what it holds already: on a GPU what is free there; else what the
    machine can give, or the container, if that is less. None where the system does not tell."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + int(torch.cuda.memory_reserved(device))
    if not _AVAILABLE.exists():
        return None
    found = re.search(r"^MemAvailable:\s*(\d+) kB", _AVAILABLE.read_text(encoding="utf-8"), re.MULTILINE)
    limits = [int(found[1]) * 1024 + _status("VmRSS")] if found else []
    for file in _LIMITS:
        text = file.read_text(encoding="utf-8").strip() if file.exists() else ""
        if text.isdigit():
            limits.append(int(text))
    return min(limits, default=None)


def _forget_highest() -> None:
    try:
        _CLEAR.write_text("5", encoding="ascii")  # see proc_pid_clear_refs(5)
    except OSError:
        return


def _status(field: str) -> int:
    """A size of this process in bytes; 0 where the system does not tell."""
    if not _STATUS.exists():
        return 0
    found = re.search(rf"^{field}:\s*(\d+) kB", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _highest() -> int:
    if resource is None:
        return 0
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else highest * 1024  # which counts bytes where others count kB
