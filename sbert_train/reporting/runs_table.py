"""Runs beside each other as a table for people: a column for each, and blocks of what differs and of results."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from sbert_train.errors import printable
from sbert_train.reporting.runs import Beside, Change, Figure, RunsCompared

NARROWEST = 10
"""What a run needs, so that no figure is broken: `+0.1658 to` of an interval, of which the rest is in the next line."""
_WIDEST = 40
_BETWEEN, _AROUND = 2, 3  # of the box
_MOST_RUNS = 5
_ABSENT, _UNSET = "not there", "default"
_CAPTION = (
    "* the 95% interval excludes 0. Intervals are those of a run's difference from its own base (before), by bootstrap "
    "over the examples. Between runs (from …) there is none here, as a report does not hold the figure of each example."
)
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
"""What YAML may take for something other than a text."""
_BREAKS = (r"(?<=, )", r"(?<= )", r"(?<=[_/:])|(?<=[.-])(?!\d)")
_LABELS = {
    "best_step": "best step",
    "train_runtime": "training, seconds",
    "pairs_per_second": "rows a second",
}

Row = tuple[str, Sequence[str | Text], str]
"""Label, a cell for each run, style."""


def render(compared: RunsCompared, width: int = 80) -> Iterator[Table | Text]:
    """What to print, one below the other: tables of at most five runs, of which the first is in each, and lines, which
    are not to be broken again, for a command is among them.

    width: of the screen; below 80 it is taken as 80, and lines break.
    """
    width = max(80, width)
    first, others = compared.names[0], compared.names[1:]
    for start in range(0, len(others), _MOST_RUNS - 1):
        yield _table(compared, (first, *others[start : start + _MOST_RUNS - 1]), width)
    told = [_CAPTION] if compared.sets else []
    for text in [*told, *(f"Note: {printable(note)}" for note in compared.notes)]:
        yield Text(textwrap.fill(text, width))
    if compared.eval_command is not None:
        yield Text("The paired interval of the difference between the runs:")
        yield Text(f"  {printable(compared.eval_command)}")


def _table(compared: RunsCompared, names: Sequence[str], width: int) -> Table:
    longest = 40 if len(names) < 3 else width - len(names) * (NARROWEST + _BETWEEN) - _AROUND
    blocks = [_config_rows(compared, names), _fact_rows(compared, names)]
    blocks += [list(_set_rows(one, names)) for one in compared.sets]
    labels = [_broken(label, longest) for block in blocks for label, _, _ in block]
    wide = min(longest, max(len(line) for label in labels for line in label.split("\n")))
    each = min(_WIDEST, (width - wide - _AROUND) // len(names) - _BETWEEN)
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", overflow="fold", width=wide)
    for name in names:
        table.add_column(Text(printable(name)), overflow="fold", width=each)
    for block in blocks:
        for label, cells, style in block:
            shown = (one if isinstance(one, Text) else Text(_broken(one, each, "")) for one in cells)
            table.add_row(Text(_broken(label, longest), style=style), *shown)
        table.add_section()
    return table


def _config_rows(compared: RunsCompared, names: Sequence[str]) -> list[Row]:
    if not compared.config:
        return [("configuration: the same", (), "bold")]
    return [("configuration", (), "bold"), *_value_rows(compared.config, names, _exactly)]


def _fact_rows(compared: RunsCompared, names: Sequence[str]) -> list[Row]:
    if not compared.facts:
        return []
    return [("run", (), "bold"), *_value_rows(compared.facts, names, _rounded)]


def _value_rows(
    differing: Mapping[str, Mapping[str, Any]], names: Sequence[str], show: Callable[[Any], str]
) -> Iterator[Row]:
    for key, values in differing.items():
        absent = _UNSET if key.startswith("train.") else _ABSENT
        cells = [show(values[name]) if name in values else absent for name in names]
        yield f"  {printable(_LABELS.get(key, key))}", cells, ""


def _exactly(value: Any) -> str:
    return printable(value if isinstance(value, str) else _compact(value))


def _compact(value: Any) -> str:
    """A value as YAML in one line, the name of a thing before the rest of it.

    >>> print(_compact({"dim": 384, "bias": None, "roles": ["anchor", "query: ", "no"]}))
    {dim: 384, bias: null, roles: [anchor, "query: ", "no"]}
    >>> print(_compact({"scale": 20.0, "name": "cosent"}))
    {name: cosent, scale: 20.0}
    """
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: item[0] != "name")
        return f"{{{', '.join(f'{_compact(key)}: {_compact(one)}' for key, one in items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_compact, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _rounded(value: Any) -> str:
    if not isinstance(value, float):
        return _exactly(value)
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _set_rows(one: Beside, names: Sequence[str]) -> Iterator[Row]:
    title = f"{one.task}, {one.n:,} {one.unit}"
    if not any(name in changes for changes in one.metrics.values() for name in names):
        return
    yield printable(title), (), "bold"
    for metric, changes in one.metrics.items():
        found = [changes.get(name) for name in names]
        reference = next(iter(changes))
        yield f"  {printable(metric)}", (), ""
        yield "    before", _each(found, lambda change: f"{change.before.value:.4f}"), ""
        yield "    after", _each(found, lambda change: f"{change.after.value:.4f}"), ""
        yield "    difference", _each(found, lambda change: _starred(change.difference)), ""
        yield "    95% interval", _each(found, lambda change: _interval(change.difference)), "dim"
        if len(changes) > 1:
            differences = [_from_first(one, metric, name, reference) for name in names]
            yield f"    from {printable(reference)}", differences, ""


def _each(found: Sequence[Change | None], show: Any) -> list[str | Text]:
    return ["-" if change is None else show(change) for change in found]


def _starred(figure: Figure) -> Text:
    if figure.low <= 0 <= figure.high:
        return Text(f"{figure.value:+.4f}")
    return Text(f"{figure.value:+.4f} *", style="green" if figure.value > 0 else "red")


def _interval(figure: Figure) -> Text:
    return Text(f"{figure.low:+.4f} to {figure.high:+.4f}", style="dim")


def _from_first(one: Beside, metric: str, name: str, reference: str) -> str:
    value = one.from_first[metric].get(name)
    return "" if name == reference else "-" if value is None else f"{value:+.4f}"


def _broken(text: str, longest: int, indent: str = "    ") -> str:
    """A text in lines that are no longer than so many characters where it can be, broken behind dots and the like, and
    not within figures.

    >>> print(_broken("  train.per_device_train_batch_size", 22))
      train.per_device_
        train_batch_size
    >>> print(_broken("[1e-05, 0.25]", 9, ""))
    [1e-05,
    0.25]
    """
    lines = [""]
    for part in _parts(text, longest - len(indent)):
        if len((lines[-1] + part).rstrip()) > longest and lines[-1].strip():
            lines.append(indent)
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _parts(text: str, longest: int, breaks: Sequence[str] = _BREAKS) -> list[str]:
    """A text in parts that fit a line where they can: entries, or their words, or the parts of those."""
    if len(text.rstrip()) <= longest or not breaks:
        return [text]
    return [one for part in re.split(breaks[0], text) for one in _parts(part, longest, breaks[1:])]
