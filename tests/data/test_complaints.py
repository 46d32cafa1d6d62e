"""What is wrong with one data set is told at once, a line for each thing."""

from pathlib import Path
from typing import Any

import pytest

from sbert_train.data.sources import load_set
from sbert_train.errors import DataError
from tests.data.conftest import Load


def test_of_several_files_it_is_told_what_is_wrong_with_each(load: Load, tmp_path: Path) -> None:
    contents = {
        "b1.jsonl": '{"anchor": "a", "score": 1}\n{"anchor": \n',
        "b2.jsonl": '{"anchor": "a", "score": 2}\n',
        "b3.jsonl": '{"anchor": "a", "score": "x"}\n{"anchor": "a", "score": 9}\n{"anchor": "a", "score": "y"}\n',
        "b4.jsonl": "",
        "b5.jsonl": '{"text": "a", "score": 2}\n',
        "b6.jsonl": '{"Text": "a", "score": 2}\n',
        "b7.jsonl": '{"text": "a", "score": 2}\n',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)

    def complaints(**options: Any) -> list[str]:
        with pytest.raises(DataError) as raised:
            load("b*.jsonl", columns={"anchor": "anchor"}, score_range=[0, 5], **options)
        return str(raised.value).split("\n")

    expected = [
        "b1.jsonl, line 2: broken JSON at column ",
        "b3.jsonl, line 1: score needs a finite number, column 'score' has 'x'; correct the row, or set "
        "policy.wrong_score of this set to drop (2 of the first 3 rows have this)",
        "b3.jsonl, line 2: score 9 is outside score_range [0, 5]",
        "b4.jsonl is empty; expected rows of data",
        "b5.jsonl: columns: anchor: there is no column 'anchor'; columns found: 'text', 'score' "
        "(the same in 1 more file)",
        "b6.jsonl: columns: anchor: there is no column 'anchor'; columns found: 'Text', 'score'",
    ]
    told = complaints()
    assert len(told) == len(expected)
    for line, words in zip(told, expected, strict=True):
        assert line.startswith(f"data set pairs: {words}")
    assert len(complaints(limit=2)) == 1, "how many rows of the next files are looked at depends on the first"


def test_of_many_wrong_files_the_first_are_told_and_how_many_more_there_are(
    load: Load, tmp_path: Path
) -> None:
    for number in range(10, 35):
        (tmp_path / f"b{number}.csv").write_text("anchor\na,b\n")
    with pytest.raises(DataError) as raised:
        load("b*.csv")
    *told, last = str(raised.value).split("\n")
    starts = [f"data set pairs: b{number}.csv, line 2: expected 1 fields as in" for number in range(10, 20)]
    assert all(line.startswith(start) for line, start in zip(told, starts, strict=True))
    assert last == "data set pairs: something is wrong with 15 more files"


def test_the_name_of_a_set_adds_no_line_to_a_message(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        load_set("a\nb", str(tmp_path / "none.csv"))
    assert str(raised.value).startswith("data set a\\nb: no such file: ")
