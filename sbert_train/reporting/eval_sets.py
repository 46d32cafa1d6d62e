"""An eval set by its examples: similarities before and after, gold against predicted, and what changed most."""

from collections.abc import Mapping, Sequence
from math import ceil, floor

import numpy as np

from sbert_train.evaluation.metrics import Array
from sbert_train.evaluation.results import Cosines
from sbert_train.reporting.charts import BOTTOM, RIGHT, TOP, Frame, histogram, left_of, legend, scatter
from sbert_train.reporting.details import Cloud, Example, SetDetails
from sbert_train.reporting.html import Html, joined, tag
from sbert_train.reporting.scales import axis_around
from sbert_train.reporting.verdict import signed
from sbert_train.reporting.words import figure, number, section

BINS = 30
MODELS = ("base", "tuned")

COMPARED: Mapping[str, tuple[str, str]] = {
    "sts": ("pairs with a score in the upper third", "pairs with a score in the lower third"),
    "pair_classification": ("pairs with label 1", "pairs with label 0"),
    "triplet": ("anchor and positive", "anchor and negative"),
    "retrieval": ("query and its nearest relevant text", "query and its nearest other text"),
    "reranking": ("query and relevant candidates", "query and other candidates"),
}
"""Kind of task -> whose cosines are shown."""

GAINS: Mapping[str, str] = {
    "sts": "All pairs are ranked by gold score and by cosine; ties share the mean of their ranks. A pair got better by "
    "as much as its rank by cosine came nearer to its rank by gold, as a share of the whole order.",
    "pair_classification": "A pair got better by as much as its cosine moved towards its label, up for 1, down for 0.",
    "triplet": "A row got better by as much as the share of its triplets rose whose positive is nearer than the "
    "negative.",
    "retrieval": "A query got better by as much as its ndcg@10 rose; shown with its first relevant text.",
    "reranking": "A query got better by as much as its average precision rose; shown with its first relevant "
    "candidate and its first other one.",
    "nli": "A pair got better where a wrong class became right, and worse the other way round.",
}
"""Kind of task -> what better and worse mean of an example."""

NO_SETS = "There are no eval sets, so there are no similarities and no examples to show."
NO_COSINES = "This task says of no two texts that they belong together or do not, so there are no similarities to show."
NO_EXAMPLES = "This task judges no single example, so there are none that got better or worse."


def eval_sets_section(sets: Sequence[SetDetails]) -> Html:
    """Each eval set in turn."""
    shown = [_eval_set(place, one) for place, one in enumerate(sets)]
    return section("eval-sets", "Eval sets", *(shown or [tag("p", NO_SETS)]))


def _eval_set(place: int, one: SetDetails) -> Html:
    charts = []
    if one.cosines is not None:
        charts += _histograms(place, one.kind, one.cosines)
    if one.cloud is not None:
        charts += _clouds(place, one.cloud)
    return tag(
        "div",
        tag("h3", one.name),
        tag("div", *charts, class_="charts pairs") if charts else None,
        None if one.cosines is not None else tag("p", NO_COSINES),
        _changed(one),
        class_="set",
    )


def _histograms(place: int, kind: str, cosines: tuple[Cosines, Cosines]) -> list[Html]:
    every = np.concatenate([values for one in cosines for values in (one.together, one.apart)])
    low, high = floor(every.min() * 20) / 20, ceil(every.max() * 20) / 20
    edges = np.linspace(low, high if high > low else low + 0.05, BINS + 1)
    shares = [[_shares(one.together, edges), _shares(one.apart, edges)] for one in cosines]
    highest = max(max(share) for pair in shares for share in pair)
    names = COMPARED[kind]
    figures = []
    for model, one, pair in zip(MODELS, cosines, shares, strict=True):
        title = f"Cosines of the {model} model"
        counted = [
            f"{name} ({count:,})"
            for name, count in zip(names, (len(one.together), len(one.apart)), strict=True)
        ]
        words = _means(one)
        frame = Frame(f"cosines-{place}-{model}", title, f"{' and '.join(counted)}. {words}", "cosine")
        drawn = histogram(frame, edges.tolist(), list(zip(counted, pair, strict=True)), highest=highest)
        figures.append(figure(title, drawn, legend(counted, kind="area"), words))
    return figures


def _means(one: Cosines) -> str:
    if not len(one.together) or not len(one.apart):
        return "There are cosines of one kind only."
    together, apart = float(one.together.mean()), float(one.apart.mean())
    how = "apart" if together >= apart else "the wrong way round"
    return f"Mean {number(together, 2)} against {number(apart, 2)}: {number(abs(together - apart), 2)} {how}."


def _shares(values: Array, edges: Array) -> list[float]:
    counts = np.histogram(values, edges)[0]
    return (counts / max(1, len(values))).tolist()  # type: ignore[no-any-return]


def _clouds(place: int, cloud: Cloud) -> list[Html]:
    y = axis_around([*cloud.before, *cloud.after], BOTTOM, TOP)
    x = axis_around(cloud.gold, left_of(y), RIGHT)
    shown = len(cloud.gold)
    some = f"{shown:,} of {cloud.pairs:,} pairs, spread evenly" if shown < cloud.pairs else f"{shown:,} pairs"
    figures = []
    for model, values in zip(MODELS, (cloud.before, cloud.after), strict=True):
        title = f"Cosine of the {model} model against gold score"
        words = f"{some}; cosines from {number(min(values), 2)} to {number(max(values), 2)}."
        frame = Frame(f"points-{place}-{model}", title, words, "gold score")
        figures.append(
            figure(title, scatter(frame, list(zip(cloud.gold, values, strict=True)), x, y), note=words)
        )
    return figures


def _changed(one: SetDetails) -> Html:
    if not one.figure:
        return tag("p", NO_EXAMPLES)
    lists = [
        _examples("Improved most", one.better, one, "No example got better."),
        _examples("Got worse most", one.worse, one, "No example got worse."),
    ]
    return joined(tag("p", GAINS[one.kind], class_="note"), tag("div", *lists, class_="changed"))


def _examples(title: str, examples: Sequence[Example], one: SetDetails, otherwise: str) -> Html:
    if not examples:
        return tag("div", tag("h4", title), tag("p", otherwise))
    items = [
        tag("li", _texts(example), tag("p", _figures(example, one), class_="figures")) for example in examples
    ]
    return tag("div", tag("h4", title), tag("ol", *items, class_="examples"))


def _texts(example: Example) -> Html:
    pairs = [
        tag("div", tag("dt", role), tag("dd", text or "(empty)", dir="auto")) for role, text in example.texts
    ]
    return tag("dl", *pairs)


def _figures(example: Example, one: SetDetails) -> str:
    digits = 0 if one.figure == "class" else 2
    said = f"{one.figure} {number(example.before, digits)} → {number(example.after, digits)}"
    if example.gold is not None:
        what = {"sts": "gold score", "nli": "gold class"}.get(one.kind, "label")
        said += f"; {what} {example.gold:g}"
    if one.kind == "sts":
        said += f"; {number(abs(example.gain), 2)} of the order {'nearer' if example.gain > 0 else 'farther'}"
    elif one.kind != "nli":
        said += f"; {signed(example.gain, 2)}"
    return said
