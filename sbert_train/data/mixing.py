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
        datasets_per_batch: a batch is joined from this many draws, each of B / datasets_per_batch rows and of another
            set for as long as there are others.
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
        text_keys: Sequence[NDArray[np.int64] | None] | None = None,
        labels: Sequence[NDArray[np.int64] | None] | None = None,
    ) -> None:
        """Set up the batches.

        Args:
            sizes: the number of rows of each set.
            batch_size: B, a multiple of mix.datasets_per_batch.
            drop_last: leave out what does not fill a batch; otherwise a set's last draw is smaller, or larger by one
                row, for a row alone has no other to be told from.
            text_keys: for each set (rows, texts of a row) int64: rows that share a key are kept out of the same
                draw as far as possible. None, for all sets or for one: no such care.
            labels: for each set (rows,) int64: rows come two by two of one label, so that a draw of an even size holds
                at least two rows of every label that it holds, for as long as there are. None: no such care.
        """
        self.sizes = list(sizes)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.epoch = 0
        self._mix = mix
        self._seed = seed
        self._text_keys = text_keys or [None] * len(self.sizes)
        self._labels = labels or [None] * len(self.sizes)
        self._draw = batch_size // mix.datasets_per_batch
        self._starts = np.cumsum([0, *self.sizes])

    @property
    def sampler(self) -> "MixedBatches":
        """Itself: across processes accelerate seeks set_epoch on a batch sampler's sampler."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch."""
        self.epoch = epoch

    def of_size(self, batch_size: int) -> "MixedBatches":
        """The same rows in batches of so many, a multiple of mix.datasets_per_batch."""
        return MixedBatches(
            self.sizes,
            batch_size,
            mix=self._mix,
            seed=self._seed,
            drop_last=self.drop_last,
            text_keys=self._text_keys,
            labels=self._labels,
        )

    def __len__(self) -> int:
        draws = [self.draws_of(size) for size in self.sizes]
        total = len(draws) * min(draws) if self._mix.strategy == "round_robin" else sum(draws)
        step = self._mix.datasets_per_batch
        return total // step if self.drop_last else -(-total // step)

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng((self._seed, self.epoch))
        schedule = self._schedule(rng)
        streams = [self._stream(number) for number in range(len(self.sizes))]
        step = self._mix.datasets_per_batch
        for i in range(0, len(schedule), step):
            drawn = [next(streams[number]) for number in schedule[i : i + step]]
            if len(drawn) == step or not self.drop_last:
                yield np.concatenate(drawn).tolist()

    def draws_of(self, size: int) -> int:
        """How many draws a set of this size gives before it is used up."""
        whole, rest = divmod(size, self._draw)
        return whole if self.drop_last else whole + (rest > 1 or (rest == 1 and whole == 0))

    def _schedule(self, rng: np.random.Generator) -> Rows:
        """The set of each draw of an epoch; consecutive draws make up a batch."""
        draws = np.array([self.draws_of(size) for size in self.sizes])
        step, total = self._mix.datasets_per_batch, int(draws.sum())
        if self._mix.strategy == "round_robin":
            return np.tile(np.arange(len(draws)), int(draws.min()))
        if self._mix.strategy == "weighted" and total:
            shares = np.where(draws > 0, self._mix.weights, 0.0)
            shares /= shares.sum()
            if step == 1:
                return rng.choice(len(draws), size=total, p=shares)
            again = np.count_nonzero(shares) < step
            batches = [
                rng.choice(len(draws), size=step, replace=bool(again), p=shares)
                for _ in range(-(-total // step))
            ]
            return np.concatenate(batches)[:total]
        if step == 1:
            return rng.permutation(np.repeat(np.arange(len(draws)), draws))
        return _joined(draws, step, rng)

    def _stream(self, number: int) -> Iterator[Rows]:
        """Draws of one set, each row once, then all of them again in another order, without end."""
        rng = np.random.default_rng((self._seed, self.epoch, number))
        while True:
            order = rng.permutation(self.sizes[number])
            labels, keys = self._labels[number], self._text_keys[number]
            if labels is not None:
                order = _paired_by_label(order, labels, rng)
            if keys is not None:
                order = _spread_repeats(order, keys, self._draw)
            draws = self.draws_of(len(order))
            used = draws * self._draw if self.drop_last else len(order)
            for i in range(draws):
                stop = used if i == draws - 1 else (i + 1) * self._draw
                yield order[i * self._draw : stop] + self._starts[number]


def _joined(draws: Rows, step: int, rng: np.random.Generator) -> Rows:
    """All draws, in an order where `step` consecutive ones are of different sets for as long as there are others.

    The sets that have most left go first, which keeps others for them; then the batches are shuffled, all but a last
    one that is not full.
    """
    left, batches = draws.copy(), []
    while left.any():
        batch: list[int] = []
        while len(batch) < step and left.any():
            others = np.where(np.isin(np.arange(len(left)), batch), 0, left)
            chosen = int(np.argmax(others if others.any() else left))
            left[chosen] -= 1
            batch.append(chosen)
        batches.append(batch)
    whole = [batch for batch in batches if len(batch) == step]
    shuffled = [whole[i] for i in rng.permutation(len(whole))] + batches[len(whole) :]
    return np.array([number for batch in shuffled for number in batch], dtype=np.int64)


def _paired_by_label(order: Rows, labels: NDArray[np.int64], rng: np.random.Generator) -> Rows:
    """The same rows in shuffled pairs of one label; rows that find no partner come last."""
    pairs: list[tuple[int, int]] = []
    alone: dict[int, int] = {}
    for row in order.tolist():
        partner = alone.pop(int(labels[row]), None)
        if partner is None:
            alone[int(labels[row])] = row
        else:
            pairs.append((partner, row))
    paired = rng.permutation(np.array(pairs, dtype=np.int64).reshape(-1, 2))
    return np.concatenate([paired.ravel(), np.array(list(alone.values()), dtype=np.int64)])


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
