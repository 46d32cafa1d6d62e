"""How a training went: loss, learning rate, gradient, metrics and monitored figures by step."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from sbert_train.reporting.charts import Frame, Line, Mark, curves
from sbert_train.reporting.html import Html, tag
from sbert_train.reporting.monitors import GRADIENT, MONITORS, name_of
from sbert_train.reporting.run import Run
from sbert_train.reporting.scales import scientific
from sbert_train.reporting.verdict import MINUS
from sbert_train.reporting.words import figure, section

POINTS = 500
"""More than a chart is wide; where there are more, neighbours are averaged."""
LOGGED = {"loss": "Loss", "learning_rate": "Learning rate", "grad_norm": GRADIENT.name.capitalize()}

Points = list[tuple[float, float]]


def training_section(run: Run) -> Html:
    """A chart for each figure that was logged."""
    kept = run.report["training"]["best_step"]
    mark = None if kept is None else Mark(kept, f"kept: step {kept:,}")
    charts = [
        *_metric_charts(run, mark),
        *(
            _chart(
                f"logged-{key.replace('_', '-')}",
                title,
                _logged(run.log, key),
                about=GRADIENT.phrase if key == "grad_norm" else None,
            )
            for key, title in LOGGED.items()
        ),
        *_monitor_charts(run.report["monitors"]),
    ]
    shown = [chart for chart in charts if chart is not None]
    if not shown:
        nothing = "Nothing was logged on the way, so there are no curves; train.logging_steps says how often."
        return section("training", "Training", tag("p", nothing))
    return section("training", "Training", tag("div", *shown, class_="charts"))


def averaged(points: Points, most: int) -> tuple[Points, int]:
    """At most so many points, each the mean of as many neighbours, and how many those are.

    >>> averaged([(0, 1.0), (1, 3.0), (2, 5.0)], 2)
    ([(0.5, 2.0), (2.0, 5.0)], 2)
    """
    together = -(-len(points) // most)
    if together <= 1:
        return points, 1
    groups = [points[start : start + together] for start in range(0, len(points), together)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups
    ], together


def _metric_charts(run: Run, mark: Mark | None) -> list[Html | None]:
    """The metrics of the verdict, from the base at step 0 to the last step."""
    steps = run.report["training"]["steps"]
    charts = []
    for place, one in enumerate(run.findings):
        values: dict[float, float] = {0: run.report["baseline"][one.set][one.metric]}
        values |= dict(_logged(run.log, f"eval_{one.set}_{one.metric}"))
        if one.set in run.report["final"]:
            values[steps] = run.report["final"][one.set][one.metric]
        points = sorted(values.items())
        charts.append(
            _chart(f"metric-{place}", f"{one.set}: {one.metric}", points, mark=mark, begins="the base")
        )
    return charts


def _monitor_charts(monitors: Sequence[Mapping[str, Any]]) -> list[Html | None]:
    keys = dict.fromkeys(key for entry in monitors for key in entry if key not in ("step", "epoch"))
    return [
        _chart(
            f"monitor-{place}",
            f"Monitored: {name_of(key)}",
            _logged(monitors, key),
            about=MONITORS[key].phrase if key in MONITORS else None,
        )
        for place, key in enumerate(keys)
    ]


def _chart(
    id: str,
    title: str,
    points: Points,
    *,
    mark: Mark | None = None,
    begins: str | None = None,
    about: str | None = None,
) -> Html | None:
    """A figure by step, with what it is, if that is told, and where it went; None where nothing was logged."""
    if not points:
        return None
    shown, together = averaged(points, POINTS)
    (first, start), (last, end) = points[0], points[-1]
    base = f" ({begins})" if begins else ""
    words = f"From {_figure(start)} at step {first:,}{base} to {_figure(end)} at step {last:,}."
    lowest, highest = min(points, key=lambda one: one[1]), max(points, key=lambda one: one[1])
    ends = f" Lowest {_figure(lowest[1])} at step {lowest[0]:,}, highest {_figure(highest[1])} at step {highest[0]:,}."
    if about is not None:
        words = f"{about} {words}"
    frame = Frame(id, title, words + ends, "step")
    note = words if together == 1 else f"{words} Each point is the mean of {together} that were logged."
    return figure(title, curves(frame, [Line(title, shown)], mark=mark), note=note)


def _logged(entries: Sequence[Mapping[str, Any]], key: str) -> Points:
    """(step, figure) of each entry that has a finite figure of this name."""
    return [
        (entry["step"], float(entry[key]))
        for entry in entries
        if isinstance(entry.get(key), int | float) and isfinite(entry[key])
    ]


def _figure(value: float) -> str:
    return scientific(value, 1) if 0 < abs(value) < 1e-3 else f"{value:,.4g}".replace("-", MINUS)
