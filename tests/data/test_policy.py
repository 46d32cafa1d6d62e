"""What is wrong with a row is refused, dropped or kept, as the policy says, and counted."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import pytest

from sbert_train.config.policy import PolicyConfig
from sbert_train.data.policy import CHOICES, Policy
from sbert_train.data.readers import Chunk
from sbert_train.data.roles import resolve_roles
from sbert_train.data.sieve import RowAccount, Selection, Sieve
from sbert_train.data.sources import load_set
from sbert_train.errors import DataError

Columns = dict[str, list[Any]]

# kind -> the columns of four rows, of which the second and the fourth have it, and what else the set says
WRONG: dict[str, tuple[Columns, dict[str, Any]]] = {
    "empty_text": ({"anchor": ["a", "", "c", None]}, {}),
    "unlabelled": ({"anchor": ["a", "b", "c", "d"], "label": ["0", "-1", "1", ""]}, {}),
    "wrong_score": ({"anchor": ["a", "b", "c", "d"], "score": ["1", "one", "2", float("nan")]}, {}),
    "score_out_of_range": (
        {"anchor": ["a", "b", "c", "d"], "score": [1, 6, 2, -1]},
        {"score_range": (0, 5)},
    ),
    "wrong_label": ({"anchor": ["a", "b", "c", "d"], "label": ["0", "yes", "1", 2.5]}, {}),
    "wrong_text": ({"anchor": ["a", 7, "c", {"text": "d"}]}, {}),
}


def sift(
    columns: Columns, policy: dict[str, str], **selection: Any
) -> tuple[dict[str, list[Any]], RowAccount]:
    chosen = Selection(**selection, policy=Policy(**policy))
    sieve = Sieve(chosen)
    chunk = Chunk("rows.csv", "line", range(2, 6), columns)
    table = sieve.take(chunk, resolve_roles(list(columns), {}, {}), {})
    return table.to_pydict(), sieve.account


@pytest.mark.parametrize("kind", WRONG)
def test_it_is_refused_with_its_place_the_count_and_the_key_to_set(kind: str) -> None:
    columns, selection = WRONG[kind]
    with pytest.raises(DataError) as raised:
        sift(columns, {kind: "refuse"}, **selection)
    others = " or ".join(choice for choice in CHOICES[kind] if choice != "refuse")
    assert str(raised.value).startswith("rows.csv, line 3: ")
    end = f"; correct the row, or set policy.{kind} of this set to {others} (2 of the first 4 rows have this)"
    assert str(raised.value).endswith(end)


@pytest.mark.parametrize("kind", WRONG)
def test_it_is_dropped_and_counted(kind: str) -> None:
    columns, selection = WRONG[kind]
    rows, account = sift(columns, {kind: "drop"}, **selection)
    assert rows["anchor"] == ["a", "c"]
    reason = "empty anchor" if kind == "empty_text" else kind.replace("_", " ")
    assert account == RowAccount(4, 2, 0, 0, {reason: 2})


def test_an_empty_text_is_kept_and_counted() -> None:
    keep = {"empty_text": "keep"}
    rows, account = sift(WRONG["empty_text"][0], keep)
    assert rows["anchor"] == ["a", "", "c", ""]
    assert account == RowAccount(4, 4, 0, 0, {}, {"empty anchor": 2})
    rows, account = sift({"anchor": [" ", "b", "c", ""], "positive": ["", "x", "y", "z"]}, keep)
    assert rows == {"anchor": [" ", "b", "c", ""], "positive": ["", "x", "y", "z"]}
    assert account.kept_with == {"empty anchor": 2, "empty positive": 1}
    twice = {"anchor": ["a"] * 4, "negative_1": ["", "b", "c", "d"], "negative_2": ["", "x", "y", "z"]}
    assert sift(twice, keep)[1].kept_with == {"empty negative": 1}, "a row counts once for a role"


def test_an_empty_negative_is_kept_and_a_row_without_any_is_not() -> None:
    columns: Columns = {"anchor": ["a", "b", "c", "d"], "negative": [["x", "y"], ["", None], [], ["z", "z"]]}
    rows, account = sift(columns, {"empty_text": "keep"})
    assert rows["negative"] == [["x", "y"], ["", ""], ["z", "z"]]
    assert account == RowAccount(4, 3, 0, 0, {"empty negative": 1}, {"empty negative": 1})


def test_a_score_out_of_its_range_is_kept_as_the_end_that_it_is_beyond() -> None:
    columns, selection = WRONG["score_out_of_range"]
    rows, account = sift(columns, {"score_out_of_range": "keep"}, **selection)
    assert rows["score"] == [0.2, 1.0, 0.4, 0.0]
    assert account == RowAccount(4, 4, 0, 0, {}, {"score out of range": 2})


def test_of_several_problems_the_row_is_dropped_for_the_first_and_refused_for_any() -> None:
    columns: Columns = {"anchor": ["a", "", "", "d"], "label": [0, 1, None, 1], "score": [1, "x", 1, 1]}
    keep_and_drop = {"empty_text": "keep", "wrong_score": "drop"}
    _, account = sift(columns, keep_and_drop)
    assert account == RowAccount(4, 2, 0, 0, {"wrong score": 1, "unlabelled": 1}, {})
    with pytest.raises(
        DataError, match="line 3: score needs a finite number, column 'score' has 'x'; correct"
    ):
        sift(columns, {"empty_text": "keep"})
    assert sift(columns, {})[1].dropped == {"empty anchor": 1, "unlabelled": 1}, (
        "a dropped row is not looked at"
    )


@pytest.mark.parametrize("kind", WRONG)
def test_rows_behind_the_limit_are_not_refused(kind: str) -> None:
    columns, selection = WRONG[kind]
    rows, account = sift(columns, {kind: "refuse"}, **selection, limit=1)
    assert rows["anchor"] == ["a"]
    assert (account.kept, account.limited) == (1, 3)


def test_the_limit_counts_the_rows_that_are_kept() -> None:
    columns, selection = WRONG["wrong_score"]
    rows, account = sift(columns, {"wrong_score": "drop"}, **selection, limit=2)
    assert rows["score"] == [1.0, 2.0] and account.limited == 0


def test_a_set_is_loaded_by_its_policy_and_cached_for_it(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("anchor,score\na,1\n,2\nc,9\n")

    def load(**policy: str) -> Any:
        return load_set("pairs", str(path), score_range=(0, 5), policy=policy, cache_dir=tmp_path / "cache")

    dropped = load(score_out_of_range="drop")
    kept = load(score_out_of_range="keep", empty_text="keep")
    assert [one.rows["anchor"][:] for one in (dropped, kept)] == [["a"], ["a", "", "c"]]
    assert dropped.account.dropped == {"empty anchor": 1, "score out of range": 1}
    again = load(score_out_of_range="keep", empty_text="keep")
    assert again.account == kept.account and kept.account.kept_with == {
        "empty anchor": 1,
        "score out of range": 1,
    }
    with pytest.raises(DataError, match=r"data set pairs: .*pairs\.csv, line 4: score '9' is outside"):
        load()


@pytest.mark.parametrize("policy", [{"wrong_score": "keep"}, {"empty_text": "clip"}, {"empty": "drop"}])
def test_a_policy_that_there_is_not_is_refused(tmp_path: Path, policy: dict[str, str]) -> None:
    with pytest.raises(DataError, match=r"^data set pairs: policy: "):
        load_set("pairs", str(tmp_path / "pairs.csv"), policy=policy)


def test_the_configuration_has_the_same_kinds_choices_and_defaults() -> None:
    assert PolicyConfig().model_dump() == asdict(Policy())
    names = [one.name for one in fields(Policy)]
    assert {name: get_args(PolicyConfig.model_fields[name].annotation) for name in names} == {
        name: CHOICES[name] for name in names
    }
    assert set(names) == set(WRONG) == set(CHOICES) - {"mixed_labels"}
