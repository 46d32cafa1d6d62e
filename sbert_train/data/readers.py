"""One reader per file format: the rows as they stand in the file, each with its place, refused where they are broken.

Text formats are read with the standard library and not with pandas or Arrow, which would turn the texts `NA` and
`null` into nothing and `001` into 1, and which cannot say on which line a file is broken.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, Features

from sbert_train.data.hints import listed, one_line, shown
from sbert_train.errors import DataError

CHUNK_ROWS = 10_000
LONGEST_FIELD = 2**31 - 1  # characters; the csv module's own limit, 131,072, refuses long documents
DELIMITERS = {",": "commas", "\t": "tabs", ";": "';'", "|": "'|'"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

T = TypeVar("T")

TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one source, column by column.

    Attributes:
        source: what an error message calls the source, such as the path of the file.
        unit: how places are counted there: `line` or `row`.
        numbers: the place of each row, from 1 (the line on which it starts, or its number).
        columns: column name -> one value per row.
    """

    source: str
    unit: str
    numbers: Sequence[int]
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, row: int) -> str:
        return f"{self.source}, {self.unit} {self.numbers[row]}"

    def only(self, mask: Sequence[bool]) -> "Chunk":
        """The rows whose entry in the mask is true."""
        kept = {name: list(compress(values, mask)) for name, values in self.columns.items()}
        return Chunk(self.source, self.unit, list(compress(self.numbers, mask)), kept)


@dataclass(frozen=True)
class RowSource:
    """Rows that are there to be read.

    Attributes:
        name: what an error message calls the source.
        columns: every column that the rows have.
        chunks: reads the wanted columns; each call starts from the first row.
        class_names: column -> names of its classes, where the source stores classes as numbers and knows their names.
        doubt: why its only column may be several that were not told apart, and what to do then; or nothing.
    """

    name: str
    columns: tuple[str, ...]
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    doubt: str = ""


def read_file(path: Path) -> RowSource:
    """Open a data file by its suffix (one of `READERS`).

    Raises:
        DataError: the file cannot be opened, is empty, or is broken; here where the whole file must be looked at to
            know its columns, otherwise when the chunks are read. The message names the file and the line.
    """
    try:
        with path.open("rb") as opened:
            if not opened.read(len(BYTE_ORDER_MARK) + 1).removeprefix(BYTE_ORDER_MARK):
                raise DataError(f"{path} is empty; expected rows of data")
        source = READERS[path.suffix.lower()](path)
    except OSError as problem:
        raise DataError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    if not source.columns:
        raise DataError(f"{path} holds no rows with columns")
    return source


def read_separated(path: Path, *, delimiter: str) -> RowSource:
    """CSV or TSV with a header line. Every value is a text; quotes as RFC 4180 has them."""
    try:
        header_line, header = next(separated_records(path, delimiter), (1, []))
    except DataError as problem:  # as it is where texts in quotes have another delimiter between them
        if doubt := other_delimiter(path, delimiter):
            raise DataError(f"{problem}; or its {doubt}") from problem
        raise
    if not header:
        raise DataError(f"{path} is empty; expected a header line with the names of the columns")
    refuse_repeated(header, f"{path}, line {header_line}")
    doubt = other_delimiter(path, delimiter) if len(header) == 1 else ""
    chunks = partial(separated_chunks, path, delimiter, header)
    return RowSource(str(path), tuple(header), chunks, doubt=doubt)


def other_delimiter(path: Path, delimiter: str) -> str:
    """What to do where the header has several fields by a delimiter that the suffix does not promise; or nothing."""
    fields: dict[str, int] = {}
    for other in DELIMITERS:
        with suppress(DataError):
            fields[other] = len(next(separated_records(path, other), (1, []))[1])
    found = max(fields, key=lambda other: fields[other], default=delimiter)
    if found == delimiter or fields[found] < 2:
        return ""
    suffix = {",": ".csv", "\t": ".tsv"}.get(found)
    remedy = f"name this one {suffix}" if suffix else "save this one so"
    return f"fields look separated by {DELIMITERS[found]}, but .csv files have commas and .tsv files tabs; {remedy}"


def separated_chunks(path: Path, delimiter: str, header: list[str], wanted: Sequence[str]) -> Iterator[Chunk]:
    """The wanted columns of a CSV or TSV file; a row of another length than the header is refused."""
    records = islice(separated_records(path, delimiter), 1, None)
    positions = [header.index(name) for name in wanted]
    for batch in in_batches(records):
        for line, record in batch:
            if len(record) != len(header):
                raise DataError(
                    f"{path}, line {line}: expected {len(header)} fields as in the header, found {len(record)}; "
                    f"a text that holds {delimiter!r} must stand in double quotes"
                )
        values = list(zip(*(record for _, record in batch), strict=True))
        columns = {name: values[position] for name, position in zip(wanted, positions, strict=True)}
        yield Chunk(str(path), "line", [line for line, _ in batch], columns)


def separated_records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it starts; blank lines are passed over."""
    csv.field_size_limit(LONGEST_FIELD)
    with path.open("rb") as opened:
        records = csv.reader(decoded_lines(path, opened), delimiter=delimiter, strict=True)
        while True:
            line = records.line_num + 1
            try:
                record = next(records, None)
            except csv.Error as problem:
                # What else it says then is advice for who calls the csv module.
                if str(problem).startswith("new-line character"):
                    raise DataError(
                        f"{path}, line {line}: a CR stands alone; save the file with LF (or CRLF) line ends; "
                        "a text that holds a CR must stand in double quotes"
                    ) from problem
                raise DataError(
                    f"{path}, line {line}: the row that starts here is broken ({problem}); "
                    'a double quote inside a quoted text is written ""'
                ) from problem
            if record is None:
                return
            if record:
                yield line, record


def read_json_lines(path: Path) -> RowSource:
    """One JSON object per line. The columns are the keys of all rows; a key that a row lacks is null there.

    The file is parsed twice, once to know its columns and that it is whole, and once to read them, so that a file
    larger than memory can be read.
    """
    columns = dict.fromkeys(key for _, row in json_line_rows(path) for key in row)
    return RowSource(
        str(path), tuple(columns), lambda wanted: object_chunks(path, "line", json_line_rows(path), wanted)
    )


def json_line_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line number and object of each line that is not blank."""
    with path.open("rb") as opened:
        for line, text in enumerate(decoded_lines(path, opened), start=1):
            if text.strip():
                yield line, as_object(parse_json(text, f"{path}, line {line}"), f"{path}, line {line}")


def read_json(path: Path) -> RowSource:
    """One JSON array of objects."""
    with path.open("rb") as opened:
        text = "".join(decoded_lines(path, opened))
    value = parse_json(text, str(path))
    if not isinstance(value, list):
        raise DataError(f"{path}: expected an array of objects, found {type_name(value)}")
    rows = [(number, as_object(item, f"{path}, row {number}")) for number, item in enumerate(value, start=1)]
    columns = dict.fromkeys(key for _, row in rows for key in row)
    return RowSource(str(path), tuple(columns), partial(object_chunks, path, "row", rows))


def object_chunks(
    path: Path, unit: str, rows: Iterable[tuple[int, dict[str, Any]]], wanted: Sequence[str]
) -> Iterator[Chunk]:
    """The wanted keys of JSON objects; a key that an object lacks is None."""
    for batch in in_batches(rows):
        columns = {name: [row.get(name) for _, row in batch] for name in wanted}
        yield Chunk(str(path), unit, [number for number, _ in batch], columns)


def parse_json(text: str, place: str) -> Any:
    """The value of a JSON text; repeated keys and texts that are not Unicode are refused."""
    try:
        value = JSON.decode(text)
        if "\\ud" in text.lower():  # half of an escaped surrogate pair parses, but no tokenizer takes it
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as problem:
        where = f"{place}, line {problem.lineno}" if "\n" in text.rstrip() else place
        advice = "; one object per line belongs in a .jsonl file" if problem.msg == "Extra data" else ""
        raise DataError(f"{where}: broken JSON at column {problem.colno}: {problem.msg}{advice}") from problem
    except UnicodeEncodeError as problem:
        raise DataError(
            f"{place}: half of a surrogate pair (such as \\ud83d) is not a character"
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{place}: broken JSON: {problem}") from problem
    return value


def object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of its pairs; JSON itself would keep the last of two equal keys."""
    whole = dict(pairs)
    if len(whole) != len(pairs):
        raise ValueError(f"the key {listed(repeated([key for key, _ in pairs]))} occurs twice in one object")
    return whole


def as_object(value: Any, place: str) -> dict[str, Any]:
    """The value, if it is a JSON object."""
    if not isinstance(value, dict):
        raise DataError(f'{place}: expected an object such as {{"anchor": …}}, found {type_name(value)}')
    return value


def read_parquet(path: Path) -> RowSource:
    """A Parquet file, with the class names that `datasets` writes into its metadata."""
    try:
        schema = pq.read_schema(path)
    except pa.ArrowInvalid as problem:
        raise DataError(f"{path} is not a Parquet file: {one_line(problem)}") from problem
    refuse_repeated(schema.names, str(path))
    # Only files that `datasets` wrote: of other files it may not know every type.
    known = b"huggingface" in (schema.metadata or {})
    names = class_names(features_of(schema, path)) if known else {}
    return RowSource(str(path), tuple(schema.names), partial(parquet_chunks, path), names)


def features_of(schema: pa.Schema, path: Path) -> Features:
    """The types of the columns, as `datasets` wrote them into a file."""
    try:
        return Features.from_arrow_schema(schema)
    except Exception as problem:  # of what a stranger wrote there in its name, it may raise anything
        said = (str(problem).splitlines() or [""])[0]
        raise DataError(
            f"{path}: what its key `huggingface` says of its columns cannot be understood "
            f"({type(problem).__name__}: {said}); write the file again without it"
        ) from problem


def parquet_chunks(path: Path, wanted: Sequence[str]) -> Iterator[Chunk]:
    """The wanted columns of a Parquet file."""
    try:
        with pq.ParquetFile(path) as opened:
            batches = opened.iter_batches(CHUNK_ROWS, columns=list(wanted))
            yield from arrow_chunks(str(path), batches, wanted)
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{path} is a damaged Parquet file: {one_line(problem)}") from problem


def read_dataset(dataset: Dataset, name: str) -> RowSource:
    """A data set that `datasets` has loaded."""

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        batches = dataset.select_columns(list(wanted)).with_format("arrow").iter(CHUNK_ROWS)
        return arrow_chunks(name, batches, wanted)

    return RowSource(name, tuple(dataset.column_names), chunks, class_names(dataset.features))


def arrow_chunks(name: str, batches: Iterable[Any], wanted: Sequence[str]) -> Iterator[Chunk]:
    """Chunks from record batches or tables."""
    start = 1
    for batch in batches:
        columns = {column: batch.column(column).to_pylist() for column in wanted}
        yield Chunk(name, "row", range(start, start + batch.num_rows), columns)
        start += batch.num_rows


def class_names(features: Features) -> dict[str, list[str]]:
    """Column -> the names of its classes, for the columns that have them."""
    return {column: list(kind.names) for column, kind in features.items() if isinstance(kind, ClassLabel)}


def decoded_lines(path: Path, opened: BinaryIO) -> Iterator[str]:
    """Lines as text with their line ends; a byte-order mark at the start is passed over."""
    for line, raw in enumerate(opened, start=1):
        try:
            yield (raw.removeprefix(BYTE_ORDER_MARK) if line == 1 else raw).decode()
        except UnicodeDecodeError as problem:
            raise DataError(
                f"{path}, line {line}: byte 0x{raw[problem.start]:02x} is not UTF-8; save the file as UTF-8"
            ) from problem


def in_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """Lists of CHUNK_ROWS rows, and a last one of what remains."""
    remaining = iter(rows)
    while batch := list(islice(remaining, CHUNK_ROWS)):
        yield batch


def refuse_repeated(columns: Sequence[str], place: str) -> None:
    """Raise DataError where two columns have one name."""
    if names := repeated(columns):
        raise DataError(
            f"{place}: the column {listed(names)} occurs twice; give every column a name of its own"
        )


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once, each once."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def type_name(value: Any) -> str:
    """What JSON calls the type of a value."""
    return "null" if value is None else TYPE_NAMES.get(type(value), shown(value))


JSON = json.JSONDecoder(object_pairs_hook=object_without_repeats)

READERS: dict[str, Callable[[Path], RowSource]] = {
    ".csv": partial(read_separated, delimiter=","),
    ".tsv": partial(read_separated, delimiter="\t"),
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".parquet": read_parquet,
}
