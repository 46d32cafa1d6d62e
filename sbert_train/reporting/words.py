"""Figures in words, and parts that several sections share."""

from collections.abc import Sequence

from sbert_train.reporting.html import Child, Html, tag
from sbert_train.reporting.verdict import MINUS


def number(value: float, digits: int = 4) -> str:
    """Such as 0.8203, with a true minus."""
    return f"{value:,.{digits}f}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """Such as `3 min 57 s`.

    >>> duration(0.73), duration(59.7), duration(237.2), duration(86_520)
    ('0.7 s', '1 min 0 s', '3 min 57 s', '24 h 2 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(count: float) -> str:
    """Bytes in decimal units.

    >>> size(812_000_000), size(5_300_000_000)
    ('812 MB', '5.3 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def unbroken(words: str) -> Html:
    """Text that stays on one line, such as a number."""
    return tag("span", words, class_="nowrap")


def section(id: str, title: str, *children: Child) -> Html:
    """A part of the page with a heading, by which it is known to those who hear it."""
    return tag("section", tag("h2", title, id=id), *children, aria_labelledby=id)


def figure(title: str, chart: Html, legend: Html | None = None, note: Child = None) -> Html:
    """A chart with its title above, and below what its lines are and what it comes to."""
    said = None if note is None else tag("p", note, class_="note")
    return tag("figure", tag("figcaption", title), chart, legend, said)


def table(columns: Sequence[str], rows: Sequence[Sequence[Child]], *, caption: str) -> Html:
    """A table whose rows become blocks on a narrow screen, each cell under the name of its column. The roles are said
    again, for such a style takes them away."""
    heads = [tag("th", column, scope="col", role="columnheader") for column in columns]
    body = [
        tag(
            "tr",
            *(
                tag("td", tag("div", cell), role="cell", data_label=column)
                for column, cell in zip(columns, row, strict=True)
            ),
            role="row",
        )
        for row in rows
    ]
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )


def facts(pairs: Sequence[tuple[str, Child]]) -> Html:
    """Names and values."""
    return tag(
        "dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts"
    )
