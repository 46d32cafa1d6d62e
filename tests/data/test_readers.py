"""The readers: texts come out as they went in, and what is broken is refused with its file and line."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from sbert_train.data.readers import CHUNK_ROWS, RowSource, read_dataset, read_file
from sbert_train.errors import DataError

SURPRISING = [
    "NA",
    "null",
    "None",
    "nan",
    "001",
    "1e5",
    "TRUE",
    "",
    " ",
    '"',
    "'",
    "a,b",
    "a\tb",
    "zwölf 🐝",
    "=1+1",
]

# Any text that UTF-8 can hold; a lone surrogate is none.
texts = st.text(st.characters(exclude_categories=["Cs"]))
rows_of_texts = st.lists(st.tuples(texts, texts), min_size=1, max_size=8)


def read(source: RowSource) -> dict[str, list[Any]]:
    """All rows of a source, column by column."""
    whole: dict[str, list[Any]] = {name: [] for name in source.columns}
    for chunk in source.chunks(source.columns):
        for name, values in chunk.columns.items():
            whole[name].extend(values)
    return whole


def complaint(path: Path) -> str | None:
    """The message of the reader's DataError, or None when the file can be read; other exceptions pass."""
    try:
        read(read_file(path))
    except DataError as problem:
        return str(problem)
    return None


def write_csv(path: Path, rows: Sequence[Sequence[str]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)
    return path


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t"), (".CSV", ",")])
def test_values_of_separated_files_stay_the_texts_that_they_are(
    tmp_path: Path, suffix: str, delimiter: str
) -> None:
    path = write_csv(
        tmp_path / f"pairs{suffix}", [("a", "b"), *((text, text) for text in SURPRISING)], delimiter
    )
    assert read(read_file(path)) == {"a": SURPRISING, "b": SURPRISING}


@settings(max_examples=60, deadline=None)
@given(rows=rows_of_texts)
def test_any_text_survives_csv(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    path = write_csv(tmp_path_factory.mktemp("csv") / "pairs.csv", [("a", "b"), *rows])
    assert read(read_file(path)) == {"a": [a for a, _ in rows], "b": [b for _, b in rows]}


@settings(max_examples=60, deadline=None)
@given(rows=rows_of_texts, escaped=st.booleans())
def test_any_text_survives_json_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], escaped: bool
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "pairs.jsonl"
    lines = [json.dumps({"a": a, "b": b}, ensure_ascii=escaped) for a, b in rows]
    path.write_bytes("\n".join(lines).encode())
    assert read(read_file(path)) == {"a": [a for a, _ in rows], "b": [b for _, b in rows]}


@settings(max_examples=150, deadline=None)
@given(
    content=st.binary(max_size=200), suffix=st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".parquet"])
)
def test_whatever_the_bytes_a_reader_gives_rows_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("noise") / f"noise{suffix}"
    path.write_bytes(content)
    message = complaint(path)
    assert message is None or message.startswith(str(path))
    assert message is None or "\n" not in message


def test_a_byte_order_mark_and_windows_line_ends_are_passed_over(tmp_path: Path) -> None:
    table, lines = tmp_path / "pairs.csv", tmp_path / "pairs.jsonl"
    table.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    lines.write_bytes(b'\xef\xbb\xbf{"a": "1"}\r\n\r\n{"a": "2"}\r\n')
    assert read(read_file(table)) == {"a": ["1"], "b": ["2"]}
    assert read(read_file(lines)) == {"a": ["1", "2"]}


def test_json_columns_are_the_keys_of_all_rows_and_a_missing_key_is_null(tmp_path: Path) -> None:
    rows = [{"a": "x"}, {"a": None, "b": 1}, {"b": [1, "two"]}]
    expected = {"a": ["x", None, None], "b": [None, 1, [1, "two"]]}
    lines, array = tmp_path / "rows.jsonl", tmp_path / "rows.json"
    lines.write_text("\n".join(map(json.dumps, rows)))
    array.write_text(json.dumps(rows, indent=2))
    assert read(read_file(lines)) == expected
    assert read(read_file(array)) == expected


def test_only_the_wanted_columns_are_read_and_each_row_knows_its_place(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('a,b,c\n1,"two\nlines",3\n\n4,5,6\n')
    (chunk,) = read_file(path).chunks(["c", "b"])
    assert chunk.columns == {"c": ("3", "6"), "b": ("two\nlines", "5")}
    assert [chunk.place(row) for row in range(2)] == [f"{path}, line 2", f"{path}, line 5"]
    assert chunk.only([False, True]).place(0) == f"{path}, line 5"


def test_a_text_in_quotes_may_hold_a_line_end_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'a,b\r\n"1\r2","3\r\n4"\r\n')
    assert read(read_file(path)) == {"a": ["1\r2"], "b": ["3\r\n4"]}


def test_files_larger_than_a_chunk_are_read_whole_and_in_order(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(CHUNK_ROWS + 5)]
    table = write_csv(tmp_path / "many.csv", [["n"], *([number] for number in numbers)])
    parquet = tmp_path / "many.parquet"
    pq.write_table(pa.table({"n": numbers}), parquet)
    for path in (table, parquet):
        chunks = list(read_file(path).chunks(["n"]))
        assert [len(chunk) for chunk in chunks] == [CHUNK_ROWS, 5]
        assert [value for chunk in chunks for value in chunk.columns["n"]] == numbers
        assert chunks[1].place(0).endswith(("line 10002", "row 10001"))


def test_a_field_longer_than_the_limit_of_the_csv_module_is_read(tmp_path: Path) -> None:
    document = "word " * 60_000
    assert len(document) > 131_072
    assert read(read_file(write_csv(tmp_path / "long.csv", [["text"], [document]]))) == {"text": [document]}


def test_parquet_and_loaded_data_sets_know_the_names_of_their_classes(tmp_path: Path) -> None:
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    dataset = Dataset.from_dict({"text": ["NA", None], "label": [0, 1]}, features=features)
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    dataset.to_parquet(path)
    for source in (read_file(path), read_dataset(dataset, "org/set (train)")):
        assert read(source) == {"text": ["NA", None], "label": [0, 1]}
        assert source.class_names == {"label": ["no", "yes"]}


BROKEN = {
    "rows.csv": [
        (b"", "is empty; expected rows of data"),
        (b"\xef\xbb\xbf", "is empty; expected rows of data"),
        (b"\n\n", "is empty; expected a header line"),
        (b"a,b,a\n1,2,3\n", "line 1: the column 'a' occurs twice"),
        (b"a,b\n1,2\n3\n", "line 3: expected 2 fields as in the header, found 1; a text that holds ','"),
        (b"a,b\n1,2,3\n", "line 2: expected 2 fields as in the header, found 3"),
        (b'a,b\n1,2\n"open,3\n4,5\n', "line 3: the row that starts here is broken (unexpected end of data)"),
        (b'a,b\n"1"2,3\n', "line 2: the row that starts here is broken"),
        (
            b"a,b\r1,2\r3,4\r",
            "line 1: a CR stands alone; save the file with LF (or CRLF) line ends; a text that",
        ),
        (b'"a","b"\r"1","2"\r', "line 1: a CR stands alone"),
        (b"a,b\n1,2\r3,4\n", "line 2: a CR stands alone; save the file with LF (or CRLF) line ends"),
        (b"a,b\n1,2\n3,\xff\n", "line 3: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8"),
    ],
    "rows.tsv": [
        (b"a\tb\n1\n", "line 2: expected 2 fields as in the header, found 1; a text that holds '\\t'")
    ],
    "rows.jsonl": [
        (b"", "is empty; expected rows of data"),
        (b'{"a": 1}\n{"a": 1,}\n', "line 2: broken JSON at column 9: "),
        (b'{"a": 1} {"a": 2}\n', "line 1: broken JSON at column 10: Extra data"),
        (b'{"a": 1}\n[1]\n', 'line 2: expected an object such as {"anchor": …}, found a list'),
        (b"\n \n", "holds no rows with columns"),
        (b'"text"\n', "line 1: expected an object such as"),
        (b"null\n", "found null"),
        (b'{"a": 1, "a": 2}\n', "line 1: broken JSON: the key 'a' occurs twice in one object"),
        (b'{"a": "\xe9"}\n', "line 1: byte 0xe9 is not UTF-8"),
        (b'{"a": "\\ud83d"}\n', "line 1: half of a surrogate pair (such as \\ud83d) is not a character"),
        (b'{"a": ' + b"[" * 100_000, "line 1: broken JSON: "),
        (b'{"a": ' + b"9" * 5_000 + b"}", "line 1: broken JSON: "),
    ],
    "rows.json": [
        (b'{"a": [1]}', "expected an array of objects, found an object"),
        (
            b'{"a": 1}\n{"a": 2}\n',
            "line 2: broken JSON at column 1: Extra data; one object per line belongs in a .jsonl",
        ),
        (b'[{"a": 1},\n {"a": }]', "line 2: broken JSON at column 8"),
        (b"[]", "holds no rows with columns"),
        (b'[{"a": 1}, 2]', "row 2: expected an object such as"),
    ],
    "rows.parquet": [(b"PAR1 but nothing else", "is not a Parquet file: ")],
}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [(name, content, words) for name, cases in BROKEN.items() for content, words in cases],
)
def test_a_broken_file_is_refused_with_its_name_and_line(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    message = complaint(path)
    assert message is not None
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.csv cannot be read: No such file or directory"):
        read_file(tmp_path / "none.csv")


def test_a_parquet_file_with_damaged_pages_or_a_repeated_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [f"text {number}" for number in range(2_000)]}), path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"rows\.parquet is a damaged Parquet file"):
        read(read_file(path))
    pq.write_table(pa.table([["x"], ["y"]], names=["a", "a"]), path)
    with pytest.raises(DataError, match="the column 'a' occurs twice"):
        read_file(path)
