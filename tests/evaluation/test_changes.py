"""What became of each example, at chosen angles; and the cosines of texts that belong together or do not."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from sbert_train.evaluation.changes import changes, most_changed
from sbert_train.evaluation.results import TaskResult
from sbert_train.evaluation.tasks import Task, make_task

MakeAngles = Callable[[Mapping[str, float]], Any]


def task_of(kind: str, **columns: list[Any]) -> Task:
    return make_task(kind, "set", Dataset.from_dict(columns))


def cos(*degrees: float) -> Any:
    return pytest.approx(np.cos(np.deg2rad(degrees)), abs=1e-6)


def at(make: MakeAngles, task: Task, **degrees: float) -> TaskResult:
    """The result of a model that puts these texts at these angles."""
    return task.evaluate(make(degrees))


PAIRS = {"sentence1": ["a"] * 4, "sentence2": ["w", "x", "y", "z"]}


def test_a_pair_is_better_by_as_much_as_its_rank_came_nearer_to_gold(at_angles: MakeAngles) -> None:
    task = task_of("sts", **PAIRS, score=[0.0, 1.0, 2.0, 3.0])
    before = at(at_angles, task, a=0, w=10, x=20, y=30, z=40)  # ranks 4 3 2 1, where gold has 1 2 3 4
    after = at(at_angles, task, a=0, w=40, x=20, y=30, z=10)  # ranks 1 3 2 4
    found = changes(before, after)
    assert found is not None and found.figure == "cosine"
    assert found.gain.tolist() == [3 / 3, 0, 0, 3 / 3]
    assert found.before.tolist() == cos(10, 20, 30, 40) and found.after.tolist() == cos(40, 20, 30, 10)
    assert found.gold is not None and found.gold.tolist() == [0, 1, 2, 3]
    back = changes(after, before)
    assert back is not None and back.gain.tolist() == [-1, 0, 0, -1]


def test_pairs_of_one_score_share_their_rank(at_angles: MakeAngles) -> None:
    task = task_of("sts", **PAIRS, score=[0.0, 1.0, 1.0, 2.0])
    before = at(at_angles, task, a=0, w=40, x=30, y=20, z=10)  # ranks 1 2 3 4 against 1 2.5 2.5 4
    after = at(at_angles, task, a=0, w=40, x=20, y=20, z=10)  # 1 2.5 2.5 4
    found = changes(before, after)
    assert found is not None and found.gain.tolist() == pytest.approx([0, 0.5 / 3, 0.5 / 3, 0])


def test_a_labelled_pair_is_better_by_as_much_as_its_cosine_moved_towards_its_label(
    at_angles: MakeAngles,
) -> None:
    task = task_of("pair_classification", **PAIRS, label=[1, 1, 0, 0])
    before, after = (
        at(at_angles, task, a=0, w=60, x=0, y=60, z=0),
        at(at_angles, task, a=0, w=0, x=60, y=0, z=60),
    )
    found = changes(before, after)
    assert found is not None
    assert found.gain.tolist() == pytest.approx([0.5, -0.5, -0.5, 0.5], abs=1e-6)
    assert after.cosines is not None
    assert after.cosines.together.tolist() == cos(0, 60) and after.cosines.apart.tolist() == cos(0, 60)


def test_the_cosines_of_scored_pairs_are_those_of_the_outer_thirds(at_angles: MakeAngles) -> None:
    task = task_of("sts", **PAIRS, score=[0.0, 1.0, 1.5, 3.0])
    result = at(at_angles, task, a=0, w=80, x=50, y=30, z=10)
    assert result.cosines is not None
    assert result.cosines.together.tolist() == cos(10) and result.cosines.apart.tolist() == cos(80, 50)


def test_a_query_is_better_by_what_its_primary_metric_gained(at_angles: MakeAngles) -> None:
    task = task_of("retrieval", anchor=["p", "q"], positive=["x", "y"], negative=[["n"], ["n"]])
    before = at(at_angles, task, p=0, x=20, n=10, q=90, y=90)
    after = at(at_angles, task, p=0, x=5, n=10, q=90, y=90)
    found = changes(before, after)
    assert found is not None and (found.figure, found.gold) == ("ndcg@10", None)
    assert found.gain.tolist() == pytest.approx([1 - 1 / np.log2(3), 0])
    assert before.cosines is not None
    assert before.cosines.together.tolist() == cos(20, 0), "each query's nearest relevant text"
    assert before.cosines.apart.tolist() == cos(10, 70), "each query's nearest other text"


def test_the_nearest_of_several_relevant_texts_counts_and_a_query_without_others_has_none(
    at_angles: MakeAngles,
) -> None:
    task = task_of("retrieval", anchor=["p", "p", "q"], positive=["x", "y", "x"])
    result = at(at_angles, task, p=0, x=30, y=20, q=10)
    assert result.cosines is not None
    assert result.cosines.together.tolist() == cos(20, 20)
    assert result.cosines.apart.tolist() == cos(10), "both texts are relevant to p"


def test_triplets_and_candidates_keep_the_cosines_with_their_anchors(at_angles: MakeAngles) -> None:
    rows: dict[str, list[Any]] = {
        "anchor": ["a", "b"],
        "positive": ["x", "y"],
        "negative": [["m", "n"], ["n", "m"]],
    }
    angles = {"a": 0.0, "b": 90.0, "x": 10.0, "y": 70.0, "m": 40.0, "n": 60.0}
    for kind in ("triplet", "reranking"):
        result = at(at_angles, task_of(kind, **rows), **angles)
        assert result.cosines is not None
        assert result.cosines.together.tolist() == cos(10, 20)
        assert result.cosines.apart.tolist() == cos(40, 60, 30, 50)


def test_a_class_is_better_where_it_became_right(at_angles: MakeAngles) -> None:
    task = task_of("nli", **PAIRS, label=[0, 1, 0, 1])
    angles = at_angles({"a": 0, "w": 10, "x": 20, "y": 30, "z": 40})

    def predicting(*classes: int) -> TaskResult:
        return task.evaluate(angles, lambda u, v: np.eye(2)[list(classes)])

    found = changes(predicting(1, 1, 0, 0), predicting(0, 0, 0, 0))
    assert found is not None and found.figure == "class"
    assert found.gain.tolist() == [1, -1, 0, 0]
    assert predicting(1, 1, 0, 0).cosines is None


def test_clusters_have_no_examples(at_angles: MakeAngles) -> None:
    task = task_of("clustering", sentence1=["a", "b", "c"], label=[0, 1, 1])
    result = at(at_angles, task, a=0, b=90, c=80)
    assert changes(result, result) is None and result.cosines is None
    assert task.texts_of(1) == (("sentence1", "b"),)


@pytest.mark.parametrize(
    ("kind", "columns", "texts"),
    [
        ("sts", {**PAIRS, "score": [0.0, 1.0, 2.0, 3.0]}, [("sentence1", "a"), ("sentence2", "x")]),
        ("nli", {**PAIRS, "label": [0, 1, 0, 1]}, [("sentence1", "a"), ("sentence2", "x")]),
        ("pair_classification", {**PAIRS, "label": [0, 1, 0, 1]}, [("sentence1", "a"), ("sentence2", "x")]),
        (
            "retrieval",
            {"anchor": ["p", "q", "r"], "positive": ["x", "y", "z"], "label": [0, 1, 1]},
            [("anchor", "r"), ("positive", "z")],
        ),
        (
            "reranking",
            {"anchor": ["p", "q"], "positive": ["x", "y"], "negative": [["m"], ["n"]]},
            [("anchor", "q"), ("positive", "y"), ("negative", "n")],
        ),
        (
            "triplet",
            {"anchor": ["p", "q"], "positive": ["x", "y"], "negative": [["k", "l"], ["m", "n"]]},
            [("anchor", "q"), ("positive", "y"), ("negative", "m"), ("negative", "n")],
        ),
    ],
)
def test_an_example_names_its_texts(
    kind: str, columns: dict[str, list[Any]], texts: list[tuple[str, str]]
) -> None:
    """The second one: of the retrieval, the second query that has a relevant text."""
    assert list(task_of(kind, **columns).texts_of(1)) == texts


def test_the_largest_changes_come_first_and_what_did_not_change_is_left_out() -> None:
    gain = np.array([0.1, 0.0, -0.5, 0.3, 0.1, -0.1, 0.0])
    assert most_changed(gain, 10) == ([3, 0, 4], [2, 5])
    assert most_changed(gain, 2) == ([3, 0], [2, 5])
    assert most_changed(np.zeros(3), 2) == ([], [])
