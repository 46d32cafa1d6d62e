"""Charts put values where their axes say, and axes have round numbers."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sbert_train.reporting.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Frame,
    Line,
    Mark,
    curves,
    histogram,
    scatter,
)
from sbert_train.reporting.scales import Axis, axis_around, label_width, tick_labels
from sbert_train.reporting.verdict import MINUS
from tests.reporting.browser import browser, shown

FRAME = Frame("one", "Loss", "It falls.", "step")


def paths(svg: str, kind: str) -> list[str]:
    return re.findall(rf'<path d="([^"]*)" class="{kind}"', svg)


def test_a_curve_goes_from_corner_to_corner() -> None:
    svg = curves(FRAME, [Line("loss", [(0, 0.0), (10, 1.0)])])
    assert paths(svg, "line s0") == [f"M{LEFT} {BOTTOM}L{RIGHT} {TOP}"]
    assert paths(svg, "dots s0") == [f"M{LEFT} {BOTTOM}h0M{RIGHT} {TOP}h0"]
    assert svg.startswith("<svg viewBox=") and "<title id=" not in svg.replace(
        '<title id="one-title">Loss</title>', ""
    )


def test_many_points_are_drawn_without_dots() -> None:
    svg = curves(FRAME, [Line("loss", [(i, float(i)) for i in range(31)])])
    assert paths(svg, "dots s0") == []


def test_a_mark_stands_at_its_value_with_its_words() -> None:
    svg = curves(FRAME, [Line("loss", [(0, 0.0), (10, 1.0)])], mark=Mark(5, "kept"))
    middle = f"{(LEFT + RIGHT) / 2:g}"
    assert f'x1="{middle}" x2="{middle}"' in svg and ">kept</text>" in svg


@pytest.mark.parametrize(
    "values", [(-0.0035, -0.0018), (-123_456.0, 123_456.0), (0.5, 0.50001), (-3.1e-5, -3.0e-5), (0.0, 1.0)]
)
def test_every_label_beside_a_chart_begins_within_it(values: tuple[float, float]) -> None:
    svg = curves(FRAME, [Line("loss", list(enumerate(values)))])
    labels = re.findall(r'<text x="([\d.]+)" y="[^"]*" text-anchor="end">([^<]*)</text>', svg)
    assert len(labels) >= 2
    for end, label in labels:
        assert float(end) >= label_width(label), label
    (drawn,) = paths(svg, "line s0")
    assert f"M{float(labels[0][0]) + 7:g} " in drawn, "the curve begins where the labels end"


@pytest.mark.slow
def test_figures_are_not_wider_than_their_room(tmp_path: Path) -> None:
    """Measured by a browser in the widest font that systems commonly show a page in."""
    labels = [f"{MINUS}0.0035", f"{MINUS}125,000", "100%", "0.500002", f"{MINUS}3.05e-5"]
    file = tmp_path / "labels.svg"
    shapes = "".join(
        f'<text y="20" style="font: 12.5px DejaVu Sans, Verdana, sans-serif">{one}</text>' for one in labels
    )
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{shapes}</svg>', encoding="utf-8")
    measure = "[...document.querySelectorAll('text')].map(one => one.getBBox().width)"
    with browser() as chromium, shown(chromium, file) as (opened, _):
        widths = opened.evaluate(measure)
    assert len(widths) == len(labels)
    for label, width in zip(labels, widths, strict=True):
        assert 0.7 * label_width(label) < width <= label_width(label) + 1, label


def test_the_outline_of_a_histogram_has_the_heights_of_its_shares() -> None:
    svg = histogram(FRAME, [0.0, 1.0, 2.0], [("a", [0.25, 0.5])])
    half = (BOTTOM + TOP) / 2
    middle = f"{(LEFT + RIGHT) / 2:g}"
    assert paths(svg, "area s0") == [
        f"M{LEFT} {BOTTOM}L{LEFT} {half:g}L{middle} {half:g}L{middle} {TOP}L{RIGHT} {TOP}L{RIGHT} {BOTTOM}"
    ]
    assert ">50%</text>" in svg
    lower = histogram(FRAME, [0.0, 1.0, 2.0], [("a", [0.25, 0.5])], highest=1.0)
    assert ">100%</text>" in lower and f"{middle} {half:g}L{RIGHT} {half:g}" in lower


def test_points_have_the_places_of_the_given_axes() -> None:
    svg = scatter(FRAME, [(0.5, 1.0)], Axis(0, 1, LEFT, RIGHT), Axis(-1, 1, BOTTOM, TOP))
    assert paths(svg, "cloud few") == [f"M{(LEFT + RIGHT) / 2:g} {TOP}h0"]
    many = scatter(
        FRAME, [(0.5, i / 999) for i in range(999)], Axis(0, 1, LEFT, RIGHT), Axis(0, 1, BOTTOM, TOP)
    )
    assert "".join(paths(many, "cloud")).count("h0") == 999


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20), st.booleans())
@example([1.0, 1.0000001], False)
@example([1e9, 1.001e9], False)
@example([3e-5, 3.1e-5], False)
@example([2e-5, 5e-324], True)
def test_an_axis_holds_its_values_and_few_round_ticks(values: list[float], zero: bool) -> None:
    values = [abs(value) for value in values] if zero else values
    axis = axis_around(values, 0, 100, zero=zero)
    assert axis.low < axis.high
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) and max(values) <= axis.high + slack
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 6
    assert all(axis.low - slack <= tick <= axis.high + slack for tick in ticks)
    assert len(set(tick_labels(ticks))) == len(ticks), "no two ticks look the same"


def test_between_whole_numbers_there_are_no_ticks() -> None:
    assert Axis(0, 12, 0, 1, whole=True).ticks() == [0, 5, 10]
    assert Axis(1, 3, 0, 1, whole=True).ticks() == [1, 2, 3]
    assert Axis(0, 12, 0, 1).ticks() == [0, 2.5, 5, 7.5, 10]


@pytest.mark.parametrize("values", [[], [float("nan")], [0.0], [5.0, 5.0], [float("inf"), 1.0]])
def test_an_axis_of_nothing_much_is_an_axis(values: list[float]) -> None:
    axis = axis_around(values, 0, 100)
    assert axis.low < axis.high and 0 <= axis.place(1.0) <= 100
