"""Charts as inline SVG: curves, histograms, clouds of points, and an interval. No script, nothing loaded.

Each has a title and a description for those who cannot see it, takes its colours from the style of the page, which has
light and dark ones, and tells its series apart by dashes and shapes as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from sbert_train.reporting.html import Html, joined, tag
from sbert_train.reporting.scales import Axis, axis_around, label_width, tick_labels

WIDTH, HEIGHT = 400, 246
LEFT, RIGHT, TOP, BOTTOM = 52, 382, 26, 198
"""Where the axes end; the left one stands further right where the labels beside it are wide (`left_of`)."""
LABEL_GAP = 7
FEW = 200
"""So many points can be drawn large."""
LAYERS = 6
SERIES = 5
"""How many series a chart can tell apart."""


@dataclass(frozen=True)
class Line:
    """A curve, or the outline of a histogram."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Mark:
    """A value of the x axis that a line stands at."""

    at: float
    words: str


@dataclass(frozen=True)
class Frame:
    """What every chart has."""

    id: str
    """Unique in the page."""
    title: str
    description: str
    """The same in words."""
    x_label: str


def curves(frame: Frame, lines: Sequence[Line], *, mark: Mark | None = None) -> Html:
    """Lines over a common x axis; few points are drawn as dots, too."""
    xs = [x for line in lines for x, _ in line.points] + ([mark.at] if mark else [])
    y = axis_around([y for line in lines for _, y in line.points], BOTTOM, TOP)
    x = Axis(min(xs), max(max(xs), min(xs) + 1), left_of(y), RIGHT, whole=True)
    drawn = [
        joined(_path(line.points, x, y, f"line s{number}"), _dots(line.points, x, y, f"dots s{number}"))
        for number, line in enumerate(lines)
    ]
    return _chart(frame, x, y, joined(_mark(mark, x), *drawn))


def histogram(
    frame: Frame,
    edges: Sequence[float],
    shares: Sequence[tuple[str, Sequence[float]]],
    *,
    highest: float | None = None,
    mark: Mark | None = None,
    whole: bool = False,
) -> Html:
    """Shares of values between edges, a filled outline for each series.

    Args:
        edges: one more than there are shares in a series.
        shares: (name, share of each bin, 0 to 1) by series.
        highest: the share that the y axis reaches to at least, so that two charts can have the same.
        mark: a value to mark.
        whole: whether values are whole numbers.
    """
    most = max([*(share for _, one in shares for share in one), highest or 0.0])
    y = axis_around([100 * most], BOTTOM, TOP, zero=True)
    x = Axis(edges[0], edges[-1], left_of(y, "%"), RIGHT, whole)
    drawn = []
    for number, (_, one) in enumerate(shares):
        outline = [(edges[0], 0.0)]
        for i, share in enumerate(one):
            outline += [(edges[i], 100 * share), (edges[i + 1], 100 * share)]
        outline.append((edges[-1], 0.0))
        drawn.append(_path(outline, x, y, f"area s{number}"))
    return _chart(frame, x, y, joined(*drawn, _mark(mark, x)), unit="%")


def scatter(frame: Frame, points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> Html:
    """Points; the axes are given, so that two charts can have the same. They are drawn in several layers, for those of
    one path would not be darker where they are many."""
    few = " few" if len(points) <= FEW else ""
    layers = [points[start::LAYERS] for start in range(LAYERS)]
    return _chart(frame, x, y, joined(*(_dots(one, x, y, f"cloud{few}", most=len(points)) for one in layers)))


def left_of(y: Axis, unit: str = "") -> float:
    """Where the x axis of a chart begins, so that every label of its y axis has room beside it."""
    widest = max(label_width(label + unit) for label in tick_labels(y.ticks()))
    return max(LEFT, ceil(widest) + LABEL_GAP)


def interval(low: float, value: float, high: float, axis: Axis, direction: str) -> Html:
    """A difference and its interval beside a line at zero: decoration of figures that stand in the text."""
    shown = joined(
        tag("line", x1=_n(axis.place(0)), x2=_n(axis.place(0)), y1=1, y2=19, class_="zero"),
        tag("line", x1=_n(axis.place(low)), x2=_n(axis.place(high)), y1=10, y2=10, class_="range"),
        tag("circle", cx=_n(axis.place(value)), cy=10, r=4, class_="value"),
    )
    return tag(
        "svg",
        shown,
        viewBox=f"0 0 {axis.end + axis.start:g} 20",
        class_=f"interval {direction}",
        aria_hidden="true",
    )


def legend(names: Sequence[str], *, kind: str) -> Html | None:
    """What the series of a chart are; None where it has one.

    Args:
        kind: line or area.
    """
    if len(names) < 2:
        return None
    keys = [
        tag(
            "li",
            tag("svg", _key(number, kind), viewBox="0 0 28 12", class_="key", aria_hidden="true"),
            tag("span", name),
        )
        for number, name in enumerate(names)
    ]
    return tag("ul", *keys, class_="legend")


def _key(number: int, kind: str) -> Html:
    path = "M1 6H27" if kind == "line" else "M1 11V2H27V11"
    return tag("path", d=path, class_=f"{kind} s{number}")


def _chart(frame: Frame, x: Axis, y: Axis, content: Html, *, unit: str = "") -> Html:
    title, description = f"{frame.id}-title", f"{frame.id}-words"
    return tag(
        "svg",
        tag("title", frame.title, id=title),
        tag("desc", frame.description, id=description),
        _grid(x, y, unit),
        content,
        tag(
            "text",
            frame.x_label,
            x=_n((x.start + x.end) / 2),
            y=HEIGHT - 6,
            class_="label",
            text_anchor="middle",
        ),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{title} {description}",
        class_="chart",
    )


def _grid(x: Axis, y: Axis, unit: str) -> Html:
    rows, columns = y.ticks(), x.ticks()
    left, right = _n(x.start), _n(x.end)
    return joined(
        *(
            joined(
                tag("line", x1=left, x2=right, y1=_n(y.place(value)), y2=_n(y.place(value)), class_="grid"),
                tag(
                    "text",
                    f"{label}{unit}",
                    x=_n(x.start - LABEL_GAP),
                    y=_n(y.place(value) + 4),
                    text_anchor="end",
                ),
            )
            for value, label in zip(rows, tick_labels(rows), strict=True)
        ),
        *(
            joined(
                tag(
                    "line",
                    x1=_n(x.place(value)),
                    x2=_n(x.place(value)),
                    y1=BOTTOM,
                    y2=BOTTOM + 4,
                    class_="tick",
                ),
                tag("text", label, x=_n(x.place(value)), y=BOTTOM + 20, text_anchor="middle"),
            )
            for value, label in zip(columns, tick_labels(columns), strict=True)
        ),
        tag("line", x1=left, x2=right, y1=BOTTOM, y2=BOTTOM, class_="axis"),
    )


def _mark(mark: Mark | None, x: Axis) -> Html:
    if mark is None:
        return Html()
    place = x.place(mark.at)
    is_right = place > (x.start + x.end) / 2
    return joined(
        tag("line", x1=_n(place), x2=_n(place), y1=6, y2=BOTTOM, class_="mark"),
        tag(
            "text",
            mark.words,
            x=_n(place + (-5 if is_right else 5)),
            y=14,
            text_anchor="end" if is_right else "start",
            class_="marked",
        ),
    )


def _path(points: Sequence[tuple[float, float]], x: Axis, y: Axis, kind: str) -> Html:
    places = [f"{_n(x.place(a))} {_n(y.place(b))}" for a, b in points]
    return tag("path", d=f"M{'L'.join(places)}", class_=kind)


def _dots(points: Sequence[tuple[float, float]], x: Axis, y: Axis, kind: str, *, most: int = 30) -> Html:
    """Points as strokes of no length with round ends, which take a few bytes each; none where there are too many."""
    if not 0 < len(points) <= most:
        return Html()
    return tag("path", d="".join(f"M{_n(x.place(a))} {_n(y.place(b))}h0" for a, b in points), class_=kind)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
