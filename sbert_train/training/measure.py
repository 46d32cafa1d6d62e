"""Real steps before a run: how long it will take, in how much memory, and how large its batches could be.

B rows of a batch of one process.
"""

import gc
import time
from dataclasses import asdict, dataclass
from math import floor, log2
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sbert_train.config import RunConfig
from sbert_train.data.batch import TextBatch
from sbert_train.data.mixing import MixedBatches
from sbert_train.training.arguments import LEAVES_NOTHING, training_arguments
from sbert_train.training.memory import MemoryMeter, memory_limit
from sbert_train.training.parts import Parts
from sbert_train.training.trainer import BATCH, SentenceTrainer

MEASURED = 2
"""Steps that are measured, behind a first one, which takes longer than any other."""
USED = 0.9
"""Of the memory, at most: what else runs needs some."""
FURTHEST = 16
"""Times the batch that was measured: beyond that a straight line through two measurements says nothing."""


@dataclass(frozen=True)
class Measurement:
    """What a few steps of a run take, in this process.

    Attributes:
        steps: how many were measured, of the run's own batches, with all that belongs to an optimizer step.
        seconds_per_step: their mean, and that of all steps as far as the lengths of the texts tell.
        pairs_per_second: rows of all processes.
        seconds: what all steps of the run will take, evaluations and checkpoints left out.
        peak_memory_bytes: the most that was held: on a GPU what torch allocates, else what resides in memory.
        memory_bytes: what may be held; None where the system does not tell.
        batch_size: B.
        largest_batch_size: the largest B, doubled or halved, that USED of the memory holds by a straight line through
            the peaks of B / 2 and B rows; at most FURTHEST B, and no more than there are rows. None where the system
            does not tell, B cannot be halved, or half of it took as much.
    """

    steps: int
    seconds_per_step: float
    pairs_per_second: float
    seconds: float
    peak_memory_bytes: int
    memory_bytes: int | None
    batch_size: int
    largest_batch_size: int | None

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps; the keys are the attributes."""
        return asdict(self)


def measure(config: RunConfig, parts: Parts, steps: int) -> Measurement:
    """Train a few steps, of which nothing is kept but the time and the memory that they took. The weights of the parts
    have changed then.

    Args:
        steps: of the whole run.

    Raises:
        TrainingError: there is not enough memory, or the loss is not a finite number.
    """
    batches = parts.data.batches
    with TemporaryDirectory() as folder:
        args = _arguments(config, folder)
        size, limit = args.per_device_train_batch_size, memory_limit(args.device)
        draws, half = config.data.mixing.datasets_per_batch, None
        if size % 2 == 0 and (size // 2) % draws == 0 and size // 2 >= 2 * draws:
            half = _steps(parts, args, batches.of_size(batches.batch_size // 2))
        whole = _steps(parts, args, batches)
    seconds = whole.seconds / MEASURED * longer_on_average(parts, whole)
    largest = None
    if half is not None and limit is not None:
        # Where a set must fill its share of a batch, the smallest says how large that can be; else the largest does.
        most = (min if batches.drop_last else max)(batches.sizes) * draws // args.world_size
        largest = largest_batch(size, half.peak, whole.peak, limit, most=max(size, most))
    return Measurement(
        steps=MEASURED,
        seconds_per_step=seconds,
        pairs_per_second=whole.rows / MEASURED / seconds,
        seconds=seconds * steps,
        peak_memory_bytes=whole.peak,
        memory_bytes=limit,
        batch_size=size,
        largest_batch_size=largest,
    )


def largest_batch(size: int, half_peak: int, peak: int, limit: int, *, most: int) -> int | None:
    """The largest batch that fits, see `Measurement`; None where half of a batch took as much as the whole.

    Args:
        size: B.
        half_peak, peak: bytes held at most with B / 2 and with B rows.
        limit: bytes that may be held.
        most: rows that a batch can have.

    >>> largest_batch(64, 2_000, 3_000, 10_000, most=10_000), largest_batch(64, 2_000, 3_000, 10_000, most=70)
    (256, 64)
    """
    if peak <= half_peak:
        return None  # what they hold beside their rows differs by more than the rows take
    each = (peak - half_peak) / (size / 2)
    fits = min(size + (USED * limit - peak) / each, most, FURTHEST * size)
    return max(1, int(size * 2 ** floor(log2(max(fits, 1) / size))))


@dataclass
class Seen(TrainerCallback):
    """What the steps behind the first one took."""

    meter: MemoryMeter
    rows: int = 0
    seconds: float = 0.0
    tokens: int = 0
    """Of all texts, as they stand in the rows."""
    peak: int = 0

    def __post_init__(self) -> None:
        self._began: float | None = None

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        now = time.monotonic()
        if self._began is not None:
            self.seconds += now - self._began
        self._began = now
        self.peak = self.meter.peak()

    @property
    def counts(self) -> bool:
        """Whether the first step is over."""
        return self._began is not None


class _MeasuredTrainer(SentenceTrainer):
    """Counts what goes through it."""

    seen: Seen

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        batch: TextBatch = inputs[BATCH]
        if self.seen.counts:
            self.seen.rows += batch.rows * self.args.world_size
            self.seen.tokens += _tokens(batch) * self.args.world_size
        return super().compute_loss(model, inputs, *args, **kwargs)


def _arguments(config: RunConfig, folder: str) -> TrainingArguments:
    """Those of the run, for a few steps that leave nothing behind."""
    return training_arguments(config, **LEAVES_NOTHING, output_dir=folder, max_steps=1 + MEASURED)


def _steps(parts: Parts, args: TrainingArguments, batches: MixedBatches) -> Seen:
    seen = Seen(MemoryMeter(cuda=args.device.type == "cuda"))
    trainer = _MeasuredTrainer(
        parts.model, args, rows=parts.data.rows, batches=batches, frozen=parts.frozen, callbacks=[seen]
    )
    trainer.seen = seen
    trainer.train()
    del trainer
    gc.collect()  # it lies in cycles, with its optimizer, and would be in the memory of the next
    if args.device.type == "cuda":
        torch.cuda.empty_cache()
    return seen


def _tokens(batch: TextBatch) -> int:
    if not batch.lengths:
        return 0
    return sum(batch.lengths[text] for texts in batch.index.values() for text in texts.ravel().tolist())


def longer_on_average(parts: Parts, seen: Seen) -> float:
    """How many times the tokens of the measured rows an average row has; 1 where no tokens are read in training."""
    return parts.data.rows.tokens_per_row * seen.rows / seen.tokens if seen.tokens else 1.0
