"""The negatives of an anchor, counted and said in words."""

import pytest

from sbert_train.objectives.registry import objective_spec
from sbert_train.training.negatives import Negatives, count_negatives


def counted(*, hard: int = 0, processes: int = 1, gather: bool = True, rows: int = 10_000) -> Negatives:
    spec = objective_spec("in_batch_negatives", gather=gather)
    found = count_negatives(spec, ("nli",), rows=rows, hard=hard, per_process=64, processes=processes)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"hard": 1},
            "each anchor sees 63 in-batch + 64 hard negatives; gradient accumulation adds none; 2 processes with "
            "gather would make it 255",
        ),
        (
            {"hard": 3},
            "each anchor sees 63 in-batch + 192 hard negatives; gradient accumulation adds none; 2 processes with "
            "gather would make it 511",
        ),
        (
            {"processes": 2, "hard": 1},
            "each anchor sees 127 in-batch + 128 hard negatives, gathered from 2 processes; gradient accumulation "
            "adds none; 4 processes with gather would make it 511",
        ),
        (
            {"processes": 2, "gather": False},
            "each anchor sees 63 in-batch negatives; gradient accumulation adds none; 2 processes with gather would "
            "make it 127",
        ),
        (
            {"gather": False},
            "each anchor sees 63 in-batch negatives; gradient accumulation adds none; 2 processes with gather would "
            "make it 127",
        ),
        (
            {"rows": 48, "hard": 1},
            "each anchor sees 47 in-batch + 48 hard negatives; gradient accumulation adds none; more processes would "
            "add none, as there are no more rows",
        ),
        (
            {"rows": 100},
            "each anchor sees 63 in-batch negatives; gradient accumulation adds none; 2 processes with gather would "
            "make it 99",
        ),
    ],
)
def test_they_are_accounted_for_in_words(options: dict[str, int], words: str) -> None:
    assert str(counted(**options)) == words  # type: ignore[arg-type]


def test_an_objective_that_takes_none_from_its_batch_has_none() -> None:
    spec = objective_spec("triplet")
    assert count_negatives(spec, ("nli",), rows=100, hard=1, per_process=64, processes=1) is None
