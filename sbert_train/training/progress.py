"""What a run adds up while it trains, kept in its checkpoints, so that a run that goes on counts on."""

from dataclasses import asdict, dataclass, field
from typing import Any

FILE = "progress.json"


@dataclass
class Progress:
    """Sums over all parts of a run."""

    seconds: float = 0.0
    """Training, with evaluations and checkpoints, of the parts before this one."""
    seconds_to_first_step: float | None = None
    step_seconds: float = 0.0
    input_seconds: float = 0.0
    """As `Stopwatch` takes them."""
    rows: int = 0
    """Rows of all processes that a loss was computed of."""
    tokens: int | None = 0
    """Tokens of all processes that the backbone read for a loss: of each distinct text of a batch, once. None where an
    earlier part of the run did not count them."""
    peak_memory_bytes: int = 0
    """The most that a process held, as `MemoryMeter` takes it."""
    loss: float = 0.0
    """The loss of each step, the mean over its rows, added up."""
    stopped_early: bool = False
    """Whether training ended before its last step because evaluations no longer improved."""
    collapse: dict[str, list[str]] = field(default_factory=dict)
    """What `CollapseWatch` has seen and told."""
    resumed_from: list[int] = field(default_factory=list)
    """The steps from which the run went on after an interruption."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Progress":
        """What `to_json` wrote, maybe before tokens were counted."""
        return cls(**{"tokens": None, **found})
