"""The top of the page: the verdict, what was run, and every eval set before and after."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sbert_train.evaluation.bootstrap import LEVEL
from sbert_train.reporting.charts import interval
from sbert_train.reporting.html import Child, Html, joined, tag
from sbert_train.reporting.run import Run
from sbert_train.reporting.scales import Axis
from sbert_train.reporting.verdict import BEGINNINGS, Direction, Finding, signed
from sbert_train.reporting.words import duration, facts, number, section, size, table, unbroken

SIGNS: Mapping[Direction, str] = {"better": "▲", "worse": "▼", "no change": "●"}
IN_FULL = 3
"""Findings that the headline tells one by one."""


def header(run: Run) -> Html:
    """Whose report this is, the verdict, and what was run."""
    return tag(
        "header",
        tag("p", tag("span", "Report of the run "), tag("strong", run.name), class_="eyebrow"),
        tag("h1", _headline(run)),
        tag("p", run.report["verdict"], class_="lead") if len(run.findings) > IN_FULL else None,
        _warnings(run.report),
        facts(_facts(run.report)),
    )


def results_section(run: Run) -> Html:
    """Each finding with its figures and the interval of its difference."""
    if not run.findings:
        return section("results", "Results", tag("p", run.report["verdict"]), tag("p", _HOW_TO_MEASURE))
    bounds = [bound for one in run.findings for bound in (one.change.low, one.change.high, 0.0)]
    reach = max(map(abs, bounds)) or 1.0
    axis = Axis(-reach, reach, 6, 114)
    columns = ("eval set", "metric", "base", "tuned", "difference", "last step")
    rows = [_row(run.report, one, axis) for one in run.findings]
    notes = [
        f"In brackets: the {LEVEL:.0%} interval of the paired difference, by bootstrap over the examples of the set. "
        "Where it includes zero, another draw of such examples might have shown no difference, or the opposite."
    ]
    chosen = [one for one in run.findings if one.selects]
    if chosen:
        notes.append(
            f"The model was kept for its {chosen[0].metric} on {chosen[0].set}, so that this figure is the best of "
            "several and flatters a little. A set that nothing was chosen by is the better judge."
        )
    if any(one.kind == "nli" for one in run.sets):
        notes.append("On an nli set the base is judged by the classifier as it was when training began.")
    return section(
        "results",
        "Results",
        table(columns, rows, caption="The base and the tuned model on each eval set"),
        *(tag("p", note, class_="note") for note in notes),
        _every_metric(run.report),
    )


_HOW_TO_MEASURE = (
    "Add one under data.eval in the configuration, or compare the models on a file of your own with "
    "sbert-train eval."
)


def _headline(run: Run) -> Html:
    found = run.findings
    if len(found) <= IN_FULL:
        direction = found[0].direction if len(found) == 1 else None
        return joined(None if direction is None else _sign(direction), run.report["verdict"])
    counts = Counter(one.direction for one in found)
    said = "; ".join(f"{words} {counts[one]}" for one, words in BEGINNINGS.items() if counts[one])
    return joined(f"{said[0].upper()}{said[1:]} of {len(found)} measures.")


def _sign(direction: Direction) -> Html:
    shown = tag("span", SIGNS[direction], class_=f"sign {direction.replace(' ', '-')}", aria_hidden="true")
    return joined(shown, " ")


def _warnings(report: Mapping[str, Any]) -> Html | None:
    before = [f"{one['key']}: {one['message']}" for one in report["plan_warnings"]]
    during = [f"Step {one['step']:,}: {one['warning']}" for one in report["warnings"]]
    found = [("Before the training", before), ("While it trained", during)]
    lists: list[Html] = []
    for when, items in found:
        if items:
            lists += [
                tag("p", tag("strong", f"{when}: warnings")),
                tag("ul", *(tag("li", one) for one in items)),
            ]
    return tag("div", *lists, class_="warnings") if lists else None


def _facts(report: Mapping[str, Any]) -> list[tuple[str, Child]]:
    training = report["training"]
    speed = f"{training['pairs_per_second']:,.1f} rows a second"
    if training["tokens_per_second"] is not None:
        speed += f", {training['tokens_per_second']:,.0f} tokens a second"
    kept = "the model of the last step"
    if training["best_step"] is not None:
        kept = f"the model of step {training['best_step']:,}, the best by {report['selected_by']}"
    memory = training["peak_memory_bytes"]
    where = "the GPU" if training["device"] == "cuda" else "main memory"
    found: list[tuple[str, Child]] = [
        ("Base", report["base"]),
        ("Kept", kept),
        ("Trained", f"{training['steps']:,} steps, {training['epochs']:.4g} epochs, in "
                    f"{duration(training['train_runtime'])} with evaluations"),
        ("Speed", speed),
        ("Peak memory", "unknown" if memory is None else f"{size(memory)} of {where}"),
        ("Seed", str(report["seed"])),
    ]  # fmt: skip
    if training["resumed_from"]:
        steps = ", ".join(f"{step:,}" for step in training["resumed_from"])
        found.append(("Went on", f"after interruptions, from step {steps}"))
    return found


def _row(report: Mapping[str, Any], one: Finding, axis: Axis) -> list[Child]:
    change = one.change
    digits = 4
    bounds = f"[{signed(change.low, digits)}, {signed(change.high, digits)}]"
    words = tag("span", f"{one.direction} ", class_="unseen")
    said = tag("span", _sign(one.direction), words, signed(change.value, digits), class_="nowrap")
    drawn = interval(change.low, change.value, change.high, axis, one.direction.replace(" ", "-"))
    final = report["final"].get(one.set)
    return [
        tag("strong", one.set),
        one.metric,
        unbroken(number(report["baseline"][one.set][one.metric])),
        tag("strong", unbroken(number(report["best"][one.set][one.metric]))),
        tag("span", said, unbroken(bounds), drawn, class_="difference"),
        unbroken("undefined" if final is None else number(final[one.metric])),
    ]


def _every_metric(report: Mapping[str, Any]) -> Html:
    rows: list[list[Child]] = [
        [
            name,
            metric,
            unbroken(number(report["baseline"][name][metric])),
            unbroken(number(report["best"][name][metric])),
            joined(
                unbroken(signed(change["value"], 4)),
                " ",
                unbroken(f"[{signed(change['low'], 4)}, {signed(change['high'], 4)}]"),
            ),
        ]
        for name, metrics in report["deltas"].items()
        for metric, change in metrics.items()
    ]
    columns = ("eval set", "metric", "base", "tuned", "difference")
    return tag(
        "details", tag("summary", "All metrics"), table(columns, rows, caption="All metrics of each eval set")
    )
