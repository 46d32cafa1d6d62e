"""Wrong files of every format, with what must be said."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tests.wrong_entry import a_set


def parquet(**columns: list[object]) -> bytes:
    """A Parquet file with these columns."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def damaged(content: bytes) -> bytes:
    """A Parquet file whose pages are zeros."""
    return content[:4] + bytes(400) + content[404:]


LINE = b'{"anchor": "the cat", "positive": "a cat"}\n'

WRONG_FILES = [
    a_set("an empty file", "bad.csv", "", "data set bad: bad.csv is empty; expected rows of data"),
    a_set("a file of a byte-order mark", "bad.csv", b"\xef\xbb\xbf", "bad.csv is empty"),
    a_set("a file of blank lines", "bad.csv", "\n\n\n", "bad.csv is empty; expected a header line"),
    a_set(
        "a header without rows", "bad.csv", "anchor,positive\n", "bad.csv has columns, but not a single row"
    ),
    a_set(
        "a short row",
        "bad.csv",
        "anchor,positive\nthe cat,a cat\nthe dog\n",
        "bad.csv, line 3: expected 2 fields as in the header, found 1",
        "must stand in double quotes",
    ),
    a_set(
        "a long row",
        "bad.csv",
        "anchor,positive\nthe cat, that sat,a cat\n",
        "bad.csv, line 2: expected 2 fields as in the header, found 3",
        "must stand in double quotes",
    ),
    a_set(
        "a quote that is never closed",
        "bad.csv",
        'anchor,positive\nthe cat,a cat\n"the dog,a dog\nthe man,a man\n',
        "bad.csv, line 3: the row that starts here is broken",
        'a double quote inside a quoted text is written ""',
    ),
    a_set(
        "a quote inside of a quoted text",
        "bad.csv",
        'anchor,positive\n"the "big" cat",a cat\n',
        "bad.csv, line 2: the row that starts here is broken",
    ),
    a_set(
        "two columns of one name",
        "bad.csv",
        "anchor,positive,anchor\na,b,c\n",
        "bad.csv, line 1: the column 'anchor' occurs twice",
        "give every column a name of its own",
    ),
    a_set(
        "a file in Latin-1",
        "bad.csv",
        "anchor,positive\nthe cat,a cat\nzw\xf6lf,a dog\n".encode("latin-1"),
        "bad.csv, line 3: byte 0xf6 is not UTF-8; save the file as UTF-8",
    ),
    a_set(
        "a file in UTF-16",
        "bad.csv",
        "anchor,positive\na,b\n".encode("utf-16"),
        "bad.csv, line 1: byte 0xff is not UTF-8",
    ),
    a_set(
        "a short row of a TSV",
        "bad.tsv",
        "anchor\tpositive\nthe cat\n",
        "bad.tsv, line 2: expected 2 fields as in the header, found 1",
    ),
    a_set(
        "commas in a TSV",
        "bad.tsv",
        "anchor,positive\nthe cat,a cat\n",
        "data set bad: bad.tsv: fields look separated by commas, but .csv files have commas and .tsv files tabs; "
        "name this one .csv; if 'anchor,positive' is one column indeed, map it under `columns`",
    ),
    a_set(
        "tabs in a CSV",
        "bad.csv",
        "anchor\tpositive\nthe cat, sat\ta cat\n",
        "bad.csv: fields look separated by tabs",
        "; name this one .tsv; if 'anchor\\tpositive' is one",
    ),
    a_set(
        "semicolons in a CSV",
        "bad.csv",
        "anchor;positive\nthe cat, that sat;a cat\n",
        "bad.csv: fields look separated by ';', but .csv files have commas and .tsv files tabs; save this one so; if",
    ),
    a_set(
        "semicolons between texts in quotes",
        "bad.csv",
        '"anchor";"positive"\n"the cat";"a cat"\n',
        "bad.csv, line 1: the row that starts here is broken",
        "or its fields look separated by ';', but .csv files have commas and .tsv files tabs; save this one so\n",
    ),
    a_set(
        "another column than the one of a file with bars",
        "bad.csv",
        "anchor|positive\nthe cat|a cat\n",
        "bad.csv: fields look separated by '|'",
        more="columns: {anchor: anchor}",
    ),
    a_set(
        "a broken JSON line",
        "bad.jsonl",
        LINE + b'{"anchor": "the dog", }\n' + LINE,
        "bad.jsonl, line 2: broken JSON at column 23",
    ),
    a_set(
        "a JSON line cut short", "bad.jsonl", LINE + LINE[:20], "bad.jsonl, line 2: broken JSON at column "
    ),
    a_set(
        "two objects on a JSON line",
        "bad.jsonl",
        LINE.strip() + b" " + LINE,
        "bad.jsonl, line 1: broken JSON",
        "one object per line",
    ),
    a_set(
        "a JSON line that is a list",
        "bad.jsonl",
        LINE + b'["the dog", "a dog"]\n',
        'bad.jsonl, line 2: expected an object such as {"anchor": …}, found a list',
    ),
    a_set(
        "a JSON line with a key twice",
        "bad.jsonl",
        b'{"anchor": "a", "anchor": "b", "positive": "c"}\n',
        "bad.jsonl, line 1: broken JSON: the key 'anchor' occurs twice in one object",
    ),
    a_set(
        "half of a surrogate pair",
        "bad.jsonl",
        LINE + b'{"anchor": "\\ud83d", "positive": "b"}\n',
        "bad.jsonl, line 2: half of a surrogate pair (such as \\ud83d) is not a character",
    ),
    a_set(
        "a JSON line that is not UTF-8",
        "bad.jsonl",
        LINE + b'{"anchor": "\xe9"}\n',
        "bad.jsonl, line 2: byte 0xe9",
    ),
    a_set(
        "JSON that is nested without end",
        "bad.jsonl",
        b'{"anchor": ' + b"[" * 100_000,
        "bad.jsonl, line 1: broken",
    ),
    a_set(
        "a JSON file with an object at the top",
        "bad.json",
        '{"anchor": ["a"]}',
        "bad.json: expected an array of objects, found an object",
    ),
    a_set(
        "JSON lines in a file named json",
        "bad.json",
        LINE + LINE,
        "bad.json, line 2: broken JSON",
        "one object per line belongs in a .jsonl file",
    ),
    a_set(
        "a number in a JSON array", "bad.json", '[{"anchor": "a"}, 7]', "bad.json, row 2: expected an object"
    ),
    a_set("an empty JSON array", "bad.json", "[]", "bad.json holds no rows with columns"),
    a_set(
        "text in a file named parquet",
        "bad.parquet",
        "anchor,positive\n",
        "bad.parquet is not a Parquet file",
    ),
    a_set(
        "a damaged Parquet file",
        "bad.parquet",
        damaged(parquet(anchor=[f"text {i}" for i in range(999)], positive=["b"] * 999)),
        "bad.parquet is a damaged Parquet file",
    ),
    a_set(
        "a Parquet file cut short",
        "bad.parquet",
        parquet(anchor=["a"] * 99, positive=["b"] * 99)[:-50],
        "bad.parquet is not a Parquet file",
    ),
    a_set(
        "bytes in a column of texts",
        "bad.parquet",
        parquet(anchor=["a", "b"], positive=[b"c", b"\xff"]),
        "bad.parquet, row 1: positive needs a text, column 'positive' has b'c'",
    ),
    a_set(
        "a format that is not read",
        "bad.xlsx",
        "PK",
        "bad.xlsx",
        "'.csv', '.tsv', '.json', '.jsonl', '.parquet'",
    ),
]
