"""How many negatives an anchor is told from, and what would change that.

B rows of a batch, K hard negatives of each row.
"""

from dataclasses import dataclass

from sbert_train.objectives.registry import ObjectiveSpec


@dataclass(frozen=True)
class Negatives:
    """What an anchor of some training sets sees in a step.

    Attributes:
        sets: names of the training sets.
        in_batch: B - 1, the positives of other rows.
        hard: B K, the negatives of all rows.
        processes: whose rows these are.
        more_processes: how many would make more of them, with the objective's `gather`.
        with_more: how many negatives it would be then.
    """

    sets: tuple[str, ...]
    in_batch: int
    hard: int
    processes: int
    more_processes: int
    with_more: int

    def __str__(self) -> str:
        seen = f"{self.in_batch:,} in-batch" + (f" + {self.hard:,} hard" if self.hard else "") + " negatives"
        gathered = f", gathered from {self.processes} processes" if self.processes > 1 else ""
        more = (
            f"{self.more_processes} processes with gather would make it {self.with_more:,}"
            if self.with_more > self.in_batch + self.hard
            else "more processes would add none, as there are no more rows"
        )
        return f"each anchor sees {seen}{gathered}; gradient accumulation adds none; {more}"


def count_negatives(
    spec: ObjectiveSpec, sets: tuple[str, ...], *, rows: int, hard: int, per_process: int, processes: int
) -> Negatives | None:
    """The negatives of an anchor; None where the objective takes none from its batch.

    Args:
        rows: that a batch can be made of.
        hard: K.
        per_process: rows of a batch of one process.
    """
    if not spec.kind.batch_is_negatives:
        return None
    sharing = processes if spec.options.get("gather") else 1
    batch, more = min(per_process * sharing, rows), min(per_process * sharing * 2, rows)
    return Negatives(
        sets=sets,
        in_batch=batch - 1,
        hard=hard * batch,
        processes=sharing,
        more_processes=sharing * 2,
        with_more=more - 1 + hard * more,
    )
