"""Frames are written as plain text, in grammar/<split>/*.txt; this reads them.

A line at the margin is `key: value`, and indented lines below it are its block:

    shared WHEN: when                  a table that any frame of the file can name
        yesterday; last week; on Monday
    frame: roles                       begins a frame; the value is its phenomenon
    rows: 20                           how many rows of the data set it makes
    table: x, v, y                     its columns are slots; rows end at line ends or semicolons, cells at commas,
        dog, chase, cat; cow, kick, horse                                          and "-" is an empty cell
    table: WHEN
    same:                              templates, one a line; so too other, detail, minor, topic
        The {x} {v:past} the {y} {when}.
        {when}, the {y} was {v:pp} by the {x}.
    swap: x y                          pairs of slots, parted by commas
    vary: when                         also domain

Lines that begin with # are comments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sbert_train.data.builtin.frames import Filler, Frame, Table
from sbert_train.data.builtin.inflect import Number, Word

FOLDER = Path(__file__).with_name("grammar")
_TEMPLATES = ("same", "other", "detail", "minor", "topic")
_KEYS = ("frame", "rows", "table", *_TEMPLATES, "swap", "vary", "domain")


@dataclass
class _Section:
    """One `key: value` with its indented block."""

    key: str
    value: str
    where: str  # file:line, for messages
    block: list[str] = field(default_factory=list)


def read_frames(split: str) -> tuple[Frame, ...]:
    """The frames of a split, in the order of its files and of the lines in them."""
    files = sorted((FOLDER / split).glob("*.txt"))
    return tuple(frame for file in files for frame in parse(file.read_text(encoding="utf-8"), file.name))


def parse(text: str, name: str) -> Iterator[Frame]:
    """The frames of one file's text; `name` is what messages call it.

    Raises:
        ValueError: an unknown key, a table row with a wrong number of cells, a slot that no table has.
    """
    shared: dict[str, Table] = {}
    frame: list[_Section] = []
    for section in _sections(text, name):
        if section.key.startswith("shared "):
            shared[section.key.removeprefix("shared ")] = _table(section)
            continue
        if section.key not in _KEYS:
            raise ValueError(f"{section.where}: expected one of {', '.join(_KEYS)}, found {section.key!r}")
        if section.key == "frame" and frame:
            yield _frame(frame, shared)
            frame = []
        frame.append(section)
    if frame:
        yield _frame(frame, shared)


def _sections(text: str, name: str) -> Iterator[_Section]:
    section = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and section:
            section.block.append(line.strip())
            continue
        if section:
            yield section
        key, _, value = line.partition(":")
        section = _Section(key.strip(), value.strip(), f"{name}:{number}")
    if section:
        yield section


def _table(section: _Section) -> Table:
    columns = tuple(column.strip() for column in section.value.split(","))
    lines = [line for block in section.block for line in block.split(";") if line.strip()]
    rows = tuple(tuple(_filler(cell.strip()) for cell in line.split(",")) for line in lines)
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(columns):
            raise ValueError(
                f"{section.where}: a row of the table {section.value!r} has {len(row)} cells: {line.strip()}"
            )
    return Table(columns, rows)


def _filler(cell: str) -> Filler:
    return Number(cell) if cell.isdigit() else Word("" if cell == "-" else cell)


def _frame(sections: list[_Section], shared: Mapping[str, Table]) -> Frame:
    value = {section.key: section.value for section in sections}
    block = {section.key: tuple(section.block) for section in sections}
    tables = [section for section in sections if section.key == "table"]
    return Frame(
        phenomenon=value["frame"],
        tables=tuple(shared[table.value] if table.value in shared else _table(table) for table in tables),
        same=block["same"],
        other=block.get("other", ()),
        swap=tuple((pair.split()[0], pair.split()[1]) for pair in value.get("swap", "").split(",") if pair),
        vary=value.get("vary", ""),
        detail=block.get("detail", ()),
        minor=block.get("minor", ()),
        topic=block.get("topic", ()),
        domain=value.get("domain", ""),
        rows=int(value["rows"]),
    )
