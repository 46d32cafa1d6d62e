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
    loss: float = 0.0
    """The loss of each step, the mean over its rows, added up."""
    stopped_early: bool = False
    """Whether training ended before its last step because evaluations no longer improved."""
    resumed_from: list[int] = field(default_factory=list)
    """The steps from which the run went on after an interruption."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
