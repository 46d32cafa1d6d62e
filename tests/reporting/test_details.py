"""What a page shows of an eval set: bounded, the same each time, and with the texts of the right examples."""

from typing import Any

import numpy as np
from datasets import Dataset

from sbert_train.evaluation.encoding import Encode
from sbert_train.evaluation.tasks import make_task
from sbert_train.reporting.details import CHARACTERS, EXAMPLES, POINTS, details_of, evenly


def encoder(seed: int) -> Encode:
    def encode(texts: Any, role: str) -> Any:
        return np.array(
            [np.random.default_rng([seed, *text.encode()]).normal(size=4) for text in texts], np.float32
        )

    return encode


def test_a_large_set_is_shown_in_part() -> None:
    count = POINTS + 500
    rows = {
        "sentence1": [f"left {i} {'x' * 400}" for i in range(count)],
        "sentence2": [f"right {i}" for i in range(count)],
        "score": [i % 6 for i in range(count)],
    }
    task = make_task("sts", "many", Dataset.from_dict(rows))
    before, after = (task.evaluate(encoder(seed)) for seed in (0, 1))
    found = details_of(task, before, after)
    assert found.cloud is not None and found.cloud.pairs == count
    assert len(found.cloud.gold) == len(found.cloud.before) == len(found.cloud.after) == POINTS
    assert len(found.better) == len(found.worse) == EXAMPLES
    gains = [one.gain for one in found.better]
    assert gains == sorted(gains, reverse=True) and gains[-1] > 0 > found.worse[0].gain
    for one in (*found.better, *found.worse):
        (_, left), (_, right) = one.texts
        number = int(left.split()[1])
        assert right == f"right {number}" and one.gold == number % 6
        assert one.before == before.sample.similarities["cosine"][number]  # type: ignore[attr-defined]
        assert one.after == after.sample.similarities["cosine"][number]  # type: ignore[attr-defined]
        assert len(left) == CHARACTERS and left.endswith("…")
    again = details_of(task, before, after)
    assert (again.cloud, again.better, again.worse) == (found.cloud, found.better, found.worse)


def test_a_part_is_spread_evenly() -> None:
    assert evenly(3, 5).tolist() == [0, 1, 2]
    assert evenly(10, 4).tolist() == [0, 2, 5, 7]
    assert len(set(evenly(2_001, 2_000).tolist())) == 2_000
