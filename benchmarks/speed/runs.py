"""What can be asked for: cells of the tables, and the runs that fill them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Precision = Literal["fp32", "bf16"]

OURS, PEER, PEER_FLASH, MACHINE = "ours", "peer", "peer_flash", "machine"
SIDES: Mapping[str, str] = {
    OURS: "sbert-train",
    PEER: "sentence-transformers",
    PEER_FLASH: "sentence-transformers with flash attention",
    MACHINE: "the machine",
}
"""Who runs, as a table names it."""

SEED = 42


@dataclass(frozen=True)
class Cell:
    """One cell of a table: settings that all its sides share."""

    table: str
    sides: tuple[str, ...]
    """Keys of SIDES; each of them runs once in every pair."""
    device: str = "cpu"
    """Where it runs: cpu or cuda."""
    model: str = "minilm"
    """A key of `models.MODELS`, or the folder of a model."""
    data: str = "snli"
    """A key of `rows.POOLS`."""
    batch: int = 0
    """Rows of a batch; 0 where each side takes its default."""
    precision: Precision = "fp32"
    objective: str = "in_batch_negatives"
    dropout: bool = True
    """As the model's configuration has it; False: none."""
    micro_tokens: int | None = None
    """Tokens of a micro-batch of the gradient cache; None: no cache."""
    rows: int | None = None
    """Training rows or texts, where the table fixes them; None: as many as the budget allows."""

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Cell":
        """What `asdict` gave, back from JSON."""
        return cls(**{**told, "sides": tuple(told["sides"])})


@dataclass(frozen=True)
class Run:
    """One side of one pair of a cell: what a process of its own does."""

    cell: Cell
    side: str
    pair: int
    """From 0."""
    rows: int
    """Training rows, in whole batches where the cell has a batch; or texts to encode."""
    seed: int = SEED

    @property
    def steps(self) -> int:
        """Optimizer steps, where the cell has a batch."""
        return self.rows // self.cell.batch if self.cell.batch else 0

    def to_json(self) -> dict[str, Any]:
        """For a line of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Run":
        """What `to_json` gave."""
        return cls(**{**told, "cell": Cell.from_json(told["cell"])})


@dataclass(frozen=True)
class Measured:
    """What a run's process tells."""

    seconds: float
    """The training time that the side itself reports (`train_runtime` of its Trainer), or the time of `encode`."""
    rows_seen: int
    """Rows that were trained on, over all epochs; or texts encoded."""
    tokens: int
    """Real tokens of all texts of these rows, special tokens included, padding not; a text counts as often as it stands
    there."""
    padded_tokens: int = 0
    """Tokens with the padding of each batch to the longest text of each column; 0 where the batch is not given."""
    distinct_tokens: int = 0
    """Real tokens where a text counts once in a batch, however often it stands there; 0 as before."""
    step_seconds: tuple[float, ...] = ()
    """From the end of a step to the end of the next, so that the loading of data counts; the first from the start."""
    losses: tuple[float, ...] = ()
    """Of each step, where the table asks for them."""
    setup_seconds: float = 0.0
    """From the start of the process to the first step."""
    peak_bytes: int = 0
    """Most memory held from the first step on: resident memory of the process, or allocated on the GPU."""
    base_bytes: int = 0
    """The same right before the first step, with model and data loaded."""
    device: str = ""
    threads: int = 0
    details: Mapping[str, Any] | None = None
    """What only one table has: default settings, shapes of matrix products."""

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Measured":
        """What `asdict` gave, back from JSON."""
        return cls(**{**told, "step_seconds": tuple(told["step_seconds"]), "losses": tuple(told["losses"])})
