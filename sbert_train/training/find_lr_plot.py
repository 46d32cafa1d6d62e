"""A range test as a picture: a self-contained SVG, legible on light and on dark ground."""

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10
from typing import Protocol

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 56

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #333 }
  .ground { fill: #fff } .grid { stroke: #ddd } .axis { stroke: #888 }
  .loss { stroke: #9bb; fill: none; stroke-width: 1 } .smoothed { stroke: #0a62b5; fill: none; stroke-width: 2.5 }
  .mark { stroke: #b3261e; stroke-width: 1.5; stroke-dasharray: 5 4 } .said { fill: #b3261e; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .ground { fill: #16181c } .grid { stroke: #33373d } .axis { stroke: #888 }
    .loss { stroke: #577 } .smoothed { stroke: #6cb6ff } .mark { stroke: #ff8a80 } .said { fill: #ff8a80 }
  }
"""


class Curve(Protocol):
    """What is drawn, see `RangeTest`."""

    @property
    def learning_rates(self) -> Sequence[float]: ...
    @property
    def losses(self) -> Sequence[float]: ...
    @property
    def smoothed(self) -> Sequence[float]: ...
    @property
    def suggestion(self) -> float | None: ...


def _ticks(low: float, high: float) -> list[float]:
    """From low to high in steps of 1, 2 or 5 times a power of ten, about four of them.

    >>> _ticks(0.0, 0.83)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    if not high > low:
        return [low]
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda one: abs(one * power - rough))
    return [round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1)]


def plot(test: Curve) -> str:
    """Loss over learning rate, with a logarithmic axis and the suggestion marked."""
    low, high = floor(log10(test.learning_rates[0]) + 1e-9), ceil(log10(test.learning_rates[-1]) - 1e-9)
    high = max(high, low + 1)
    # What lies far above where the curve began would press the rest flat.
    top = max(test.smoothed[0] * 1.5, min(max(test.smoothed), 2 * max(test.smoothed[:10])))
    bottom = min(0.0, *test.smoothed)

    def x(rate: float) -> float:
        return LEFT + (log10(rate) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(loss: float) -> float:
        return HEIGHT - BOTTOM - (loss - bottom) / ((top - bottom) or 1) * (HEIGHT - TOP - BOTTOM)

    def line(values: Sequence[float], kind: str) -> str:
        points = " ".join(
            f"{x(rate):.1f},{y(min(value, top)):.1f}"
            for rate, value in zip(test.learning_rates, values, strict=True)
            if isfinite(value)
        )
        return f'<polyline class="{kind}" points="{points}"/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-label="Loss over learning rate">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">1e{power}</text>')
    for value in _ticks(bottom, top):
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    parts += [
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">learning rate</text>',
        f'<text x="{LEFT}" y="20">loss of each step (thin) and smoothed</text>',
        line(test.losses, "loss"),
        line(test.smoothed, "smoothed"),
    ]
    if test.suggestion is not None:
        at, anchor = x(test.suggestion), "start" if test.suggestion < 10 ** ((low + high) / 2) else "end"
        shift = 6 if anchor == "start" else -6
        parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text class="said" x="{at + shift:.1f}" y="{TOP + 14}" text-anchor="{anchor}">'
            f"suggestion {test.suggestion:.1e}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
