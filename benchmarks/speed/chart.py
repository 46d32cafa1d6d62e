"""Curves as SVG, both axes logarithmic: small enough to write by hand, so that no drawing package is needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 44
COLOURS = ("#1b6ca8", "#7aa6c2", "#c2571a", "#6b6b6b")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
"""Lines differ by these, too, for whoever does not tell the colours apart."""


@dataclass(frozen=True)
class Line:
    """A curve: its name, and points (x, y) of positive numbers."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Scale:
    """Numbers of an axis -> places on the paper; the lowest number lies at `start`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, number: float) -> float:
        """The place of a positive number."""
        share = (log10(number) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return self.start + share * (self.end - self.start)


def svg(panels: Sequence[Panel], columns: int = 2) -> str:
    """A picture of all panels that have lines, row by row."""
    drawn = [panel for panel in panels if panel.lines]
    across, down = min(columns, len(drawn)), ceil(len(drawn) / columns)
    parts = [
        f'<g transform="translate({i % columns * WIDTH} {i // columns * HEIGHT})">{_panel(panel)}</g>'
        for i, panel in enumerate(drawn)
    ]
    size = f'width="{across * WIDTH}" height="{down * HEIGHT}"'
    view = f'viewBox="0 0 {across * WIDTH} {down * HEIGHT}"'
    style = 'font-family="sans-serif" font-size="11" fill="#222"'
    back = '<rect width="100%" height="100%" fill="#fff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} {style}>'
    return "\n".join([head, back, *parts, "</svg>"]) + "\n"


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten from low to high; powers of ten alone over more than three of them.

    >>> ticks(3, 60), ticks(1, 20_000)
    ([5.0, 10.0, 20.0, 50.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    factors = (1, 2, 5) if high / low < 1e3 else (1,)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [tick for power in powers for factor in factors if low <= (tick := factor * 10.0**power) <= high]


def _panel(panel: Panel) -> str:
    xs = [x for line in panel.lines for x, _ in line.points]
    ys = [y for line in panel.lines for _, y in line.points]
    x = Scale(min(xs) / 1.2, max(xs) * 1.2, LEFT, WIDTH - RIGHT)
    y = Scale(min(ys) / 1.4, max(ys) * 1.6, HEIGHT - BOTTOM, TOP)
    parts = [f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-size="13">{escape(panel.title)}</text>']
    for tick in sorted(set(xs)):
        parts.append(_text(x(tick), HEIGHT - BOTTOM + 15, f"{tick:,.0f}", "middle"))
    for tick in ticks(y.low, y.high):
        parts.append(
            f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            + _text(LEFT - 5, y(tick) + 4, f"{tick:,g}", "end")
        )
    parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="#222" fill="none"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, panel.x, "middle"))
    parts.append(_text(8, TOP - 8, panel.y, "start"))
    parts += [_line(line, number, x, y) for number, line in enumerate(panel.lines)]
    return "".join(parts)


def _line(line: Line, number: int, x: Scale, y: Scale) -> str:
    """The curve, a dot for each point, and its name in the legend."""
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    places = [(f"{x(a):.1f}", f"{y(b):.1f}") for a, b in line.points]
    path = "L".join(" ".join(place) for place in places)
    stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" fill="none"'
    dots = "".join(f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in places)
    at = TOP + 10 + 14 * number
    legend = f'<path d="M{LEFT + 8} {at}h22" {stroke}/>' + _text(LEFT + 35, at + 4, line.name, "start")
    return f'<path d="M{path}" {stroke}/>{dots}{legend}'


def _text(x: float, y: float, told: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(told)}</text>'
