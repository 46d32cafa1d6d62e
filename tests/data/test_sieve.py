"""Rows are filtered, checked and accounted for, one by one."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbert_train.data.complaints import DataErrors
from sbert_train.data.policy import Policy
from sbert_train.data.readers import Chunk
from sbert_train.data.roles import resolve_roles
from sbert_train.data.sieve import RowAccount, Selection, Sieve, describe
from sbert_train.data.values import equals
from sbert_train.errors import DataError

Columns = dict[str, list[Any]]


def sift(
    columns: Columns, /, class_names: Mapping[str, list[str]] | None = None, **selection: Any
) -> tuple[dict[str, list[Any]], RowAccount]:
    """Rows of one chunk through a sieve."""
    chosen = Selection(**selection)
    sieve = Sieve(chosen)
    count = len(next(iter(columns.values())))
    chunk = Chunk("rows.csv", "line", range(2, count + 2), columns)
    roles = resolve_roles(list(columns), chosen.columns, chosen.where)
    table = sieve.take(chunk, roles, class_names or {})
    return table.to_pydict(), sieve.account


@pytest.mark.parametrize(
    ("value", "wanted", "same"),
    [
        ("0", 0, True),
        ("0.0", 0, True),
        (0, "0", True),
        (0.0, 0, True),
        ("0", "0.0", False),
        ("001", "1", False),
        ("001", 1, True),
        ("1_0", 10, False),
        ("nan", float("nan"), False),
        ("", None, True),
        (None, "", True),
        (None, 0, False),
        ("True", True, True),
        ("false", True, False),
        (True, "TRUE", True),
        (1, True, True),
        ("x", 0, False),
        ("2024-01-31", date(2024, 1, 31), True),
        (Decimal("2.50"), 2.5, True),
        (Decimal("2.50"), "2.5", True),
        (2**60 + 1, str(2**60), False),
    ],
)
def test_values_of_a_file_equal_what_the_config_means(value: Any, wanted: Any, same: bool) -> None:
    assert equals(value, wanted) is same


@pytest.mark.parametrize(
    ("values", "wanted", "kept"),
    [
        (["0", "1", "2"], 0, ["a0"]),
        (["0", "1", "2"], [0, "2"], ["a0", "a2"]),
        ([0, 1.0, None], 1, ["a1"]),
        (["en", "de", ""], [None, "de"], ["a1", "a2"]),
    ],
)
def test_where_keeps_the_rows_with_one_of_the_values(values: list[Any], wanted: Any, kept: list[str]) -> None:
    rows, account = sift({"anchor": ["a0", "a1", "a2"], "code": values}, where={"code": wanted})
    assert rows == {"anchor": kept}
    assert (account.read, account.kept, account.filtered) == (3, len(kept), 3 - len(kept))


def test_where_on_several_columns_keeps_the_rows_that_fit_all_of_them() -> None:
    columns: Columns = {"anchor": ["a", "b", "c"], "lang": ["en", "en", "de"], "split": ["x", "y", "x"]}
    rows, account = sift(columns, where={"lang": "en", "split": "x"})
    assert rows == {"anchor": ["a"]}
    assert account.filtered == 2


def test_where_takes_the_names_of_classes_that_are_stored_as_numbers() -> None:
    columns: Columns = {"anchor": ["a", "b", "c"], "label": [0, 1, -1]}
    rows, _ = sift(columns, {"label": ["entailment", "neutral"]}, where={"label": "neutral"})
    assert rows == {"anchor": ["b"]}


def test_rows_with_label_minus_one_or_without_text_are_dropped_and_counted() -> None:
    columns: Columns = {
        "sentence1": ["one", "two", "", "four", None, "six", "seven"],
        "sentence2": ["one", "two", "three", " \n", "five", "six", "seven"],
        "label": [0, -1, 1, 1, 1, None, "2.0"],
    }
    rows, account = sift(columns)
    assert rows == {"sentence1": ["one", "seven"], "sentence2": ["one", "seven"], "label": [0, 2]}
    assert account == RowAccount(
        read=7,
        kept=2,
        filtered=0,
        limited=0,
        dropped={"unlabelled": 2, "empty sentence1": 2, "empty sentence2": 1},
    )


def test_a_row_that_the_filter_leaves_out_is_not_looked_at_further() -> None:
    columns: Columns = {"anchor": ["a", 5], "score": ["1", "none"], "use": [True, False]}
    assert sift(columns, where={"use": True})[0] == {"anchor": ["a"], "score": [1.0]}


def test_labels_are_whole_numbers_however_they_are_written() -> None:
    written = [0, 1.0, "2", " 3 ", "4.0", Decimal(7)]
    rows, _ = sift({"anchor": ["a"] * len(written), "label": written})
    assert rows["label"] == [0, 1, 2, 3, 4, 7]
    rows, _ = sift({"anchor": ["a"] * 4, "label": [True, "False", "TRUE", False]})
    assert rows["label"] == [1, 0, 1, 0]


def test_classes_in_words_are_numbered_in_the_order_of_their_names() -> None:
    columns: Columns = {"anchor": ["a", "b", "c", "d"], "label": ["neutral", "", "yes", None]}
    rows, account = sift(columns, labels=("yes", "neutral", "no"))
    assert rows == {"anchor": ["a", "c"], "label": [1, 0]} and account.dropped == {"unlabelled": 2}


def test_scores_are_mapped_from_their_range_to_0_and_1() -> None:
    columns: Columns = {"anchor": ["a"] * 4, "score": ["0", 5, 1.25, " 2.5 "]}
    assert sift(columns, score_range=(0.0, 5.0))[0]["score"] == [0.0, 1.0, 0.25, 0.5]
    assert sift(columns)[0]["score"] == [0.0, 5.0, 1.25, 2.5]
    assert sift({"anchor": ["a"], "score": [0]}, score_range=(-1.0, 1.0))[0]["score"] == [0.5]


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    part=st.floats(0, 1),
)
def test_a_score_within_its_range_stays_within_0_and_1(low: float, width: float, part: float) -> None:
    high = low + width
    score = min(low + part * width, high)
    mapped = sift({"anchor": ["a"], "score": [score]}, score_range=(low, high))[0]["score"][0]
    assert 0 <= mapped <= 1
    assert mapped == pytest.approx(part, abs=1e-5)


def test_negatives_of_several_columns_and_of_lists_come_in_one_list_per_row() -> None:
    columns: Columns = {
        "anchor": ["a", "b"],
        "negative_1": ["x1", "y1"],
        "negative_2": [["x2", "x3"], ["y2", "y3"]],
    }
    rows, _ = sift(columns)
    assert rows["negative"] == [["x1", "x2", "x3"], ["y1", "y2", "y3"]]


def test_a_row_with_an_empty_negative_is_dropped() -> None:
    rows, account = sift({"anchor": ["a", "b", "c", "d"], "negative": [["x"], [""], None, []]})
    assert rows == {"anchor": ["a"], "negative": [["x"]]}
    assert account.dropped == {"empty negative": 3}


def test_limit_keeps_the_first_rows_over_all_chunks() -> None:
    sieve = Sieve(Selection(limit=3))
    roles = {"anchor": ("anchor",)}
    kept: list[str] = []
    for texts in (["a", "", "b"], ["c", "d"], ["e"]):
        table = sieve.take(Chunk("rows.csv", "line", range(len(texts)), {"anchor": texts}), roles, {})
        kept.extend(table["anchor"].to_pylist())
    assert kept == ["a", "b", "c"]
    assert sieve.account == RowAccount(read=6, kept=3, filtered=0, limited=2, dropped={"empty anchor": 1})


@pytest.mark.parametrize(
    ("columns", "selection", "words"),
    [
        ({"anchor": ["a", 7]}, {}, "rows.csv, line 3: anchor needs a text, column 'anchor' has 7"),
        (
            {"anchor": ["a"], "negative": [["x", 1]]},
            {},
            "line 2: negative needs a text or a list of texts, column",
        ),
        (
            {"anchor": ["a"], "label": ["yes"]},
            {},
            "line 2: label needs a whole number (name classes in words by `labels`, or leave",
        ),
        (
            {"anchor": ["a", "b"], "label": ["yes", "maybe"]},
            {"labels": ("no", "yes")},
            "line 3: label needs one of the names in `labels`, 'no', 'yes' (choose rows by `where`), column 'label' "
            "has 'maybe'",
        ),
        (
            {"anchor": ["a"], "label": [1]},
            {"labels": ("no", "yes")},
            "line 2: label needs one of the names",
        ),
        ({"anchor": ["a"], "label": [0.5]}, {}, "column 'label' has 0.5"),
        ({"anchor": ["a"], "label": [2**63]}, {}, "column 'label' has 9223372036854775808"),
        ({"anchor": ["a"], "score": [10**400]}, {}, "score needs a finite number, column 'score' has 1000"),
        (
            {"anchor": ["a"] * 3, "label": [None, 1, True]},
            {},
            "line 4: label needs labels of one kind, column 'label' has True after 1 in line 3; correct the row",
        ),
        (
            {"anchor": ["a"] * 2, "label": ["false", "0"]},
            {},
            "line 3: label needs labels of one kind, column 'label' has '0' after 'false' in line 2",
        ),
        (
            {"anchor": ["a"] * 2, "label": ["0", "neutral"]},
            {},
            "line 3: label needs a whole number (name classes in words by `labels`, or leave the column out by "
            "`label: null`), column 'label' has 'neutral' after '0' in line 2; correct the row, or set "
            "policy.wrong_label of this set to drop",
        ),
        (
            {"anchor": ["a"] * 2, "label": ["yes", 1]},
            {"labels": ("no", "yes")},
            "column 'label' has 1 after 'yes' in line 2",
        ),
        ({"anchor": ["a"], "label": [float("nan")]}, {}, "column 'label' has nan"),
        (
            {"anchor": ["a"], "score": ["4,5"]},
            {},
            "line 2: score needs a finite number, column 'score' has '4,5'",
        ),
        ({"anchor": ["a"], "score": [None]}, {}, "score needs a finite number, column 'score' has None"),
        ({"anchor": ["a"], "score": ["inf"]}, {}, "column 'score' has 'inf'"),
        ({"anchor": ["a"], "score": [float("nan")]}, {}, "column 'score' has nan"),
        ({"anchor": ["a"], "score": [True]}, {}, "column 'score' has True"),
        (
            {"anchor": ["a", "b"], "score": ["5", "5.01"]},
            {"score_range": (0, 5)},
            "line 3: score '5.01' is outside score_range [0, 5] (widen it, if the score is right); correct the row, or "
            "set policy.score_out_of_range of this set to drop or keep",
        ),
        (
            {"anchor": ["a", "b"], "negative": [["x", "y"], ["z"]]},
            {},
            "line 3: expected 2 negatives as in the rows before, found 1",
        ),
        (
            {"anchor": ["a", "b"], "score": [[1, 2], [3]]},
            {},
            "line 3: expected 2 scores as in the rows before, found 1",
        ),
        (
            {"anchor": ["a", "b"], "score": [[1, 2], [3, "x"]]},
            {},
            "line 3: score needs a finite number, column 'score' has 'x'",
        ),
        (
            {"anchor": ["a"], "tags": [["x"]]},
            {"where": {"tags": "x"}},
            "tags must hold single values; rows.csv, line 2",
        ),
    ],
)
def test_a_value_that_its_role_cannot_take_is_refused_with_its_place(
    columns: dict[str, list[Any]], selection: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError) as raised:
        sift(columns, **selection)
    assert words in str(raised.value)


def test_what_the_first_chunk_has_is_expected_of_the_next() -> None:
    """Also where that is of another file."""
    sieve = Sieve(Selection())
    columns: Columns = {"anchor": ["a"], "negative": [["b", "c"]], "label": ["0"]}
    roles = resolve_roles(list(columns), {}, {})

    def take(**other: Any) -> int:
        return len(sieve.take(Chunk("more.csv", "line", range(2, 3), {**columns, **other}), roles, {}))

    assert take() == take() == 1
    with pytest.raises(
        DataError, match=r"^more\.csv, line 2: expected 2 negatives as in the rows before, found 1;"
    ):
        take(negative=[["b"]])
    with pytest.raises(
        DataError, match=r"^more\.csv, line 2: label needs labels of one kind, .* after '0' in line 2"
    ):
        take(label=["true"])


def test_numbers_behind_a_word_that_was_dropped_are_labels() -> None:
    columns = {"sentence1": ["a", "b", "c"], "label": ["gold", "0", "1"]}
    rows, account = sift(columns, policy=Policy(wrong_label="drop"))
    assert rows["label"] == [0, 1] and account.dropped == {"wrong label": 1} and not account.kept_with


def test_of_each_kind_of_problem_the_first_row_of_a_chunk_is_told() -> None:
    columns: Columns = {
        "anchor": ["a", "b", "c", 4, "e", 6],
        "score": ["1", "99", "x", "y", "2", "-1"],
    }
    with pytest.raises(DataErrors) as raised:
        sift(columns, score_range=(0, 5))
    assert raised.value.lines == (
        "rows.csv, line 3: score '99' is outside score_range [0, 5] (widen it, if the score is right); correct the "
        "row, or set policy.score_out_of_range of this set to drop or keep (2 of the first 6 rows have this)",
        "rows.csv, line 4: score needs a finite number, column 'score' has 'x'; correct the row, or set "
        "policy.wrong_score of this set to drop (2 of the first 6 rows have this)",
        "rows.csv, line 5: anchor needs a text, column 'anchor' has 4; correct the row, or set policy.wrong_text of "
        "this set to drop (2 of the first 6 rows have this)",
    )
    with pytest.raises(DataErrors) as raised:
        sift(columns, score_range=(0, 5), limit=2)
    assert len(raised.value.lines) == 1, "a row that is corrected takes its place within the limit"
    with pytest.raises(DataErrors) as raised:
        sift(columns, score_range=(0, 5), policy=Policy(wrong_score="drop", wrong_text="drop"))
    assert len(raised.value.lines) == 1


def test_several_scores_of_a_row_become_a_list_in_their_scale() -> None:
    columns: Columns = {"anchor": ["a", "b"], "pos": [5, "2.5"], "neg": [0, 1]}
    rows, _ = sift(columns, columns={"score": ("pos", "neg")}, score_range=(0, 5))
    assert rows["score"] == [[1.0, 0.0], [0.5, 0.2]]
    rows, _ = sift({"anchor": ["a", "b"], "score": [[1, 2], [3, 4]]}, where={"anchor": "b"})
    assert rows["score"] == [[3.0, 4.0]]
    empty, _ = sift({"anchor": ["a"], "score": [[1, 2]]}, where={"anchor": "none"})
    assert empty["score"] == [], "the kind of a column is told before its rows are filtered"


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(DataError) as raised:
        sift({"anchor": ["a"], "score": ["x" * 10_000]})
    assert len(str(raised.value)) < 220


@pytest.mark.parametrize(
    ("account", "line"),
    [
        (RowAccount(2, 2, 0, 0, {}), "snli: 2 rows read, all kept"),
        (RowAccount(9842, 3329, 6513, 0, {}), "snli: 9,842 rows read, 3,329 kept (6,513 filtered by where)"),
        (
            RowAccount(20, 10, 4, 3, {"empty positive": 1, "unlabelled": 2}),
            "snli: 20 rows read, 10 kept (4 filtered by where; 3 over the limit; 1 dropped: empty positive; "
            "2 dropped: unlabelled)",
        ),
        (
            RowAccount(3, 3, 0, 0, {}, {"empty anchor": 3}),
            "snli: 3 rows read, all kept (kept: empty anchor 3)",
        ),
        (
            RowAccount(2000, 1999, 0, 0, {"wrong text": 1}, {"empty anchor": 1200, "score out of range": 1}),
            "snli: 2,000 rows read, 1,999 kept (1 dropped: wrong text; kept: empty anchor 1,200, score out of range 1)",
        ),
    ],
)
def test_the_account_is_told_in_one_line(account: RowAccount, line: str) -> None:
    assert describe("snli", account) == line
