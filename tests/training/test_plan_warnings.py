"""What the plan warns of, each with the key to change; and of a sound set nothing."""

from pathlib import Path
from typing import Any

import pytest

from sbert_train.training.check import check
from tests.training.runs import config, sentences, write_csv

ROWS = sentences(40)
DEV = [(row[0] + " and the sun", row[1] + " and the rain", row[3]) for row in sentences(20, seed=7)]
SCORED = ("sentence1", "sentence2", "score")


def warnings_of(folder: Path, base: Path, train: Any, dev: Any = None, **blocks: Any) -> list[str]:
    """The warnings about a training set (header and rows, and its block) and an eval set."""
    header, rows, block = train
    source = {"name": "pairs", "source": str(write_csv(folder / "pairs.csv", header, rows)), **block}
    data: dict[str, Any] = {"train": [source]}
    if dev is not None:
        file = write_csv(folder / "dev.csv", SCORED, dev)
        data["eval"] = [{"source": str(file), "task": "sts", "score_range": [0, 5]}]
    found = check(config(folder, base, data=data, **blocks), say=lambda line: None)
    return [str(one) for one in found.warnings]


def test_sound_sets_give_no_reason_for_one(tmp_path: Path, tiny_model: Path) -> None:
    rows = [row[:3] for row in ROWS]
    assert warnings_of(tmp_path, tiny_model, (("anchor", "positive", "negative"), rows, {}), DEV) == []


NEGATIVE = ("anchor", "positive", "negative")
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], str, str]] = [
    (
        "repeated rows",
        (
            ("anchor", "positive"),
            [row[:2] for row in ROWS] + [(row[0].upper(), row[1]) for row in ROWS[:3]],
            {},
        ),
        {},
        "data.train.0.source",
        "3 of 43 rows (7.0%) of pairs repeat another row",
    ),
    (
        "contradicting scores",
        (
            SCORED,
            [(*row[:2], row[3]) for row in ROWS] + [(*ROWS[0][:2], 5 - ROWS[0][3])],
            {"score_range": [0, 5]},
        ),
        {"objective": {"name": "cosine_regression"}},
        "data.train.0.source",
        "2 of 41 rows (4.9%) of pairs have the texts of another row and another score",
    ),
    (
        "contradicting labels",
        (
            ("sentence1", "sentence2", "label"),
            [(*row[:2], i % 2) for i, row in enumerate(ROWS)] + [(*ROWS[0][:2], 1)],
            {},
        ),
        {"objective": {"name": "contrastive"}},
        "data.train.0.source",
        "and another label",
    ),
    (
        "scores on another scale",
        (SCORED, [(*row[:2], i % 2) for i, row in enumerate(ROWS)], {"score_range": [0, 5]}),
        {"objective": {"name": "cosine_regression"}},
        "data.train.0.score_range",
        "[0, 5], but the scores of pairs reach from 0 to 1 only, as on a scale of 0 to 1: try [0, 1]",
    ),
    (
        "scores beyond their range that are kept",
        (
            SCORED,
            [(*row[:2], 0.5 + i % 2) for i, row in enumerate(ROWS)],
            {"score_range": [0, 1], "policy": {"score_out_of_range": "keep"}},
        ),
        {"objective": {"name": "cosine_regression"}},
        "data.train.0.score_range",
        "20 of 40 scores (50.0%) of pairs lie outside of [0, 1] (20 were moved to its ends, as policy has it)",
    ),
    (
        "scores beyond their range that are dropped",
        (
            SCORED,
            [(*row[:2], [0, 0.9, 1.5, 0.2][i % 4]) for i, row in enumerate(ROWS)],
            {"score_range": [0, 1], "policy": {"score_out_of_range": "drop"}},
        ),
        {"objective": {"name": "cosine_regression"}},
        "data.train.0.score_range",
        "10 of 40 scores (25.0%) of pairs lie outside of [0, 1] (10 rows were dropped, as policy has it)",
    ),
    (
        "texts that are far longer",
        (("anchor", "positive"), [(row[0] + " cat" * 9_000, row[1]) for row in ROWS], {}),
        {"model": {"max_length": 14}},
        "model.max_length",
        "tokens would not do for 95% of them",
    ),
    (
        "one label",
        (("sentence1", "sentence2", "label"), [(*row[:2], int(i > 0)) for i, row in enumerate(ROWS)], {}),
        {"objective": {"name": "contrastive"}},
        "data.train.0.where",
        "39 of 40 rows (97.5%) of pairs have the label 1",
    ),
    (
        "a negative that is the positive",
        (NEGATIVE, [(*row[:2], row[1] if i == 0 else row[2]) for i, row in enumerate(ROWS)], {}),
        {},
        "data.train.0.columns.negative",
        "in 1 of 40 rows (2.5%) of pairs a negative is the positive",
    ),
    (
        "a negative that is the anchor",
        (NEGATIVE, [(*row[:2], row[0] if i < 2 else row[2]) for i, row in enumerate(ROWS)], {}),
        {},
        "data.train.0.columns.negative",
        "in 2 of 40 rows (5.0%) of pairs a negative is the anchor",
    ),
    (
        "a negative that is a positive of the same anchor elsewhere",
        (NEGATIVE, [*(row[:3] for row in ROWS), (ROWS[0][0], "a red house", ROWS[0][1])], {}),
        {},
        "data.train.0.columns.negative",
        "in 1 of 41 rows (2.4%) of pairs a negative is a positive of the same anchor in another row",
    ),
    (
        "roles swapped",
        (("anchor", "positive"), [(row[0], row[1] + " ?") for row in ROWS], {}),
        {},
        "data.train.0.columns",
        "100% of the positives of pairs are questions, and 0% of its anchors",
    ),
    (
        "texts that are cut",
        (
            ("anchor", "positive"),
            [(row[0] + " cat" * (10 if i < 10 else 0), row[1]) for i, row in enumerate(ROWS)],
            {},
        ),
        {"model": {"max_length": 14}},
        "model.max_length",
        "not read to their end (25% of anchor in pairs); with 20 tokens 95% of them would be",
    ),
    (
        "training pairs in the eval set",
        (("anchor", "positive"), [*(row[:2] for row in ROWS), (DEV[0][1].upper(), DEV[0][0])], {}),
        {},
        "data.eval.0.source",
        "1 of 20 rows (5.0%) is in training, too, in pairs: what it measures is partly memory; remove them from "
        "data.train.0.source",
    ),
    (
        "training texts in the eval set",
        (("anchor", "positive"), [*(row[:2] for row in ROWS), *((one, ROWS[0][1]) for one, _, _ in DEV)], {}),
        {},
        "data.eval.0.source",
        "20 of 40 texts (50.0%) stand in training, too, in pairs",
    ),
]


@pytest.mark.parametrize(
    ("train", "blocks", "key", "words"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_it_is_warned_of_and_the_key_is_named(
    tmp_path: Path, tiny_model: Path, train: Any, blocks: dict[str, Any], key: str, words: str
) -> None:
    if "model" in blocks:
        blocks = {**blocks, "model": {"base": str(tiny_model), **blocks["model"]}}
    (found,) = warnings_of(tmp_path, tiny_model, train, DEV, **blocks)
    assert found.startswith(f"{key}: ") and words in found


def test_a_scale_of_an_eval_set_that_looks_misread_is_warned_of(tmp_path: Path, tiny_model: Path) -> None:
    dev = [(one, two, score / 5) for one, two, score in DEV]
    (found,) = warnings_of(tmp_path, tiny_model, (("anchor", "positive"), [row[:2] for row in ROWS], {}), dev)
    assert found.startswith("data.eval.0.score_range: [0, 5], but the scores of dev reach from 0 to 1 only")


def test_a_teachers_margin_may_be_that_of_equal_texts(tmp_path: Path, tiny_model: Path) -> None:
    rows = [(*row[:2], row[1], row[3]) for row in ROWS]
    train: Any = (("anchor", "positive", "negative", "score"), rows, {})
    assert warnings_of(tmp_path, tiny_model, train, DEV, objective={"name": "margin_mse"}) == []


def test_a_run_without_eval_sets_is_warned_of(tmp_path: Path, tiny_model: Path) -> None:
    (found,) = warnings_of(tmp_path, tiny_model, (("anchor", "positive"), [row[:2] for row in ROWS], {}))
    assert found.startswith("data.eval: empty")
