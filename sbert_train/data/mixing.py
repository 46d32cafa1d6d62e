"""Which rows make up a batch: shuffled, mixed over data sets, without repeated texts where they would do harm.

B rows of a batch (of all processes together).

The order of an epoch depends on the seed and the epoch alone, so that a resumed run sees the rows that it would have
seen, and every process works out the same batches.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

Strategy = Literal["proportional", "round_robin", "weighted"]
Rows = NDArray[np.int64]

_MOST_DEFERRED = (
    8  # batches' worth of rows that may wait for a batch without their texts, which bounds the work
)


@dataclass(frozen=True)
class Mix:
    """How several data sets share the batches of an epoch.

    Attributes:
        strategy: proportional: every row once per epoch. round_robin: the sets in turn, until the smallest is used
            up. weighted: as many batches as proportional, each from a set drawn with the probability of its weight;
            a small set is begun anew when it is used up.
        datasets_per_batch: a batch is joined from this many draws, each of B / datasets_per_batch rows.
        weights: one for each set, for `weighted`.
    """

    strategy: Strategy = "proportional"
    datasets_per_batch: int = 1
    weights: tuple[float, ...] = ()


class MixedBatches(Sampler[list[int]]):
    """Batches of places in `MixedRows`; its `sampler` and `set_epoch` are what accelerate looks for."""

    def __init__(
        self,
        sizes: Sequence[int],
        batch_size: int,
        *,
        mix: Mix,
        seed: int,
        drop_last: bool = False,
        text_keys: Sequence[NDArray[np.int64]] | None = None,
    ) -> None:
        """Set up the batches.

        Args:
            sizes: the number of rows of each set.
            batch_size: B, a multiple of mix.datasets_per_batch.
            drop_last: leave out what does not fill a batch; otherwise a set's last batch is smaller.
            text_keys: for each set (rows, texts of a row) int64: rows that share a key are kept out of the same
                batch as far as possible. None: no such care.
        """
        self.sizes = list(sizes)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.epoch = 0
        self._mix = mix
        self._seed = seed
        self._text_keys = text_keys
        self._draw = batch_size // mix.datasets_per_batch
        self._starts = np.cumsum([0, *self.sizes])

    @property
    def sampler(self) -> "MixedBatches":
        """Itself: across processes accelerate seeks set_epoch on a batch sampler's sampler."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        draws = len(self._schedule(np.random.default_rng(0)))
        return (
            draws // self._mix.datasets_per_batch
            if self.drop_last
            else -(-draws // self._mix.datasets_per_batch)
        )

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng((self._seed, self.epoch))
        schedule = self._schedule(rng)
        streams = [self._stream(number) for number in range(len(self.sizes))]
        step = self._mix.datasets_per_batch
        for i in range(0, len(schedule), step):
            drawn = [next(streams[number]) for number in schedule[i : i + step]]
            if len(drawn) == step or not self.drop_last:
                yield np.concatenate(drawn).tolist()

    def _draws_of(self, size: int) -> int:
        return size // self._draw if self.drop_last else -(-size // self._draw)

    def _schedule(self, rng: np.random.Generator) -> Rows:
        """The set of each draw of an epoch; its length does not depend on rng."""
        draws = np.array([self._draws_of(size) for size in self.sizes])
        if self._mix.strategy == "round_robin":
            return np.tile(np.arange(len(draws)), int(draws.min()))
        if self._mix.strategy == "weighted" and draws.any():
            weights = np.where(draws > 0, self._mix.weights, 0.0)
            return rng.choice(len(draws), size=int(draws.sum()), p=weights / weights.sum())
        return rng.permutation(np.repeat(np.arange(len(draws)), draws))

    def _stream(self, number: int) -> Iterator[Rows]:
        """Draws of one set, each row once, then all of them again in another order, without end."""
        rng = np.random.default_rng((self._seed, self.epoch, number))
        while True:
            order = rng.permutation(self.sizes[number])
            if self._text_keys is not None:
                order = _spread_repeats(order, self._text_keys[number], self._draw)
            for i in range(self._draws_of(len(order))):
                yield order[i * self._draw : (i + 1) * self._draw] + self._starts[number]


def _spread_repeats(order: Rows, text_keys: NDArray[np.int64], batch: int) -> Rows:
    """The same rows, reordered so that consecutive batches hold no text twice as far as possible.

    A row whose text is already in the batch waits for a later one; when too many wait, or nothing else is left, rows
    are placed all the same.
    """
    result: list[int] = []
    waiting: deque[int] = deque()
    stream = iter(order.tolist())
    while len(result) < len(order):
        chosen: list[int] = []
        passed: list[int] = []
        seen: set[int] = set()
        while len(chosen) < batch:
            if waiting:
                row = waiting.popleft()
            elif len(passed) < _MOST_DEFERRED * batch and (new := next(stream, None)) is not None:
                row = new
            else:
                break
            keys = text_keys[row].tolist()
            if seen.isdisjoint(keys):
                seen.update(keys)
                chosen.append(row)
            else:
                passed.append(row)
        missing = batch - len(chosen)
        result += chosen + passed[:missing]
        waiting = deque(passed[missing:] + list(waiting))
    return np.array(result, dtype=np.int64)
