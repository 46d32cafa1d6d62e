"""The page says what the report says, and what it quotes stays text, whatever it is."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbert_train.data.roles import TEXT_ROLES
from sbert_train.evaluation.results import Cosines
from sbert_train.reporting.charts import SERIES
from sbert_train.reporting.html import visible
from sbert_train.reporting.monitors import GRADIENT, MONITORS
from sbert_train.reporting.page import page, style
from sbert_train.reporting.training import averaged
from tests.reporting.pages import Parsed, details, finding, made_run, report

OURS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "section",
        "div",
        "p",
        "span",
        "strong",
    ),
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "dl",
        "dt",
        "dd",
        "ul",
        "ol",
        "li",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
    ),
    *("td", "figure", "figcaption", "details", "summary", "pre", "code"),
    *("svg", "desc", "text", "line", "path", "circle"),
}
HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</style></title></pre><iframe src=https://example.org>",
    "<!-- --!> ]]> &lt; &#60;b&#62;",
    "invoice\u202efdp.exe",
    "half \ud83d of a pair, \x00 nothing, \x1b[2J, \x85, \ufffe",
    "w" * 500,
    "عربي و English",
]


def everywhere(value: Any, text: str) -> Any:
    """The same with a text in place of every text, names of metrics and sets included."""
    if isinstance(value, dict):
        return {key: everywhere(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [everywhere(inner, text) for inner in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(one)[:24] for one in HOSTILE])
def test_what_a_page_quotes_stays_text(text: str) -> None:
    found = [replace(finding(text, text), selects=True)]
    given = everywhere(report(found), text)
    given["data"][0]["dropped"] = {text: 1}
    given["versions"]["packages"] = {text: text}
    given["plan_warnings"] = [{"key": text, "message": text}]
    given["warnings"] = [{"step": 1, "warning": text}]
    given["monitors"] = [{"step": 1, "epoch": 0.1, text: 0.5}]
    run = made_run(found, name=text, report=given, sets=[details(text, text)], config=text)
    made = page(replace(run, lengths={text: np.array([3])}))
    parsed = Parsed.of(made.encode("utf-8").decode("utf-8"))
    assert {one.name for one in parsed.elements} <= OURS
    assert not [key for one in parsed.elements for key in one.attributes if key.startswith("on")]
    assert not {"src", "href", "style", "xlink:href", "action"} & {
        key for one in parsed.elements for key in one.attributes
    }
    shown = visible(text)
    for element in ("title", "h1", "h3", "dd", "td", "pre", "figcaption", "desc"):
        assert any(shown[:200] in one.text for one in parsed.all(element)), element
    for char in "\u202e\x00\x1b\x85\ufffe":
        assert char not in made


def test_the_page_allows_its_own_style_and_nothing_else() -> None:
    parsed = Parsed.of(page(made_run()))
    (style,) = parsed.all("style")
    (policy,) = [one.attributes["content"] for one in parsed.all("meta") if "http-equiv" in one.attributes]
    digest = b64encode(sha256(style.text.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style.text and "@import" not in style.text
    assert not re.search(r"https?://", page(made_run()))


def test_the_verdict_is_the_headline() -> None:
    parsed = Parsed.of(page(made_run()))
    assert parsed.all("h1")[0].text.endswith("Better on stsb by 0.040 [0.030, 0.050].")
    assert parsed.all("title")[0].text == "mine: Better on stsb by 0.040 [0.030, 0.050]."


def test_many_findings_are_counted_in_the_headline_and_told_below() -> None:
    found = [finding(f"set{i}", change=(0.2 - 0.1 * i, 0.15 - 0.1 * i, 0.25 - 0.1 * i)) for i in range(5)]
    run = made_run(found, sets=[details(one.set) for one in found])
    parsed = Parsed.of(page(run))
    assert parsed.all("h1")[0].text == "Better on 2; worse on 2; no change beyond chance on 1 of 5 measures."
    assert run.report["verdict"] in parsed.text


def test_every_chart_has_a_title_and_words_and_every_id_is_its_own() -> None:
    found = [finding(f"set{i}") for i in range(3)]
    monitors = [{"step": 1, "epoch": 0.1, "alignment": 0.5, "uniformity": -1.0}]
    run = made_run(found, sets=[details(one.set) for one in found], report=report(found, monitors=monitors))
    parsed = Parsed.of(page(run))
    ids = [one.attributes["id"] for one in parsed.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids)) > 20
    text_of = {one.attributes["id"]: one.text for one in parsed.elements if "id" in one.attributes}
    charts = [one for one in parsed.all("svg") if one.attributes.get("role") == "img"]
    assert len(charts) == 3 + 2 + 2 + 3 * 4 + 1, (
        "metrics, logged figures, monitors, four of each set, lengths"
    )
    for chart in charts:
        named = str(chart.attributes["aria-labelledby"]).split()
        assert len(named) == 2 and all(text_of[one].strip() for one in named)
    others = [one for one in parsed.all("svg") if one not in charts]
    assert {one.attributes["aria-hidden"] for one in others} == {"true"}
    for section in parsed.all("section"):
        assert text_of[str(section.attributes["aria-labelledby"])]


def test_each_monitor_is_explained_and_an_unknown_one_has_its_plain_name() -> None:
    entry = {"step": 1, "epoch": 0.1, **dict.fromkeys(MONITORS, 0.5), "my_figure": 0.25}
    run = replace(made_run(report=report([finding()], monitors=[entry])), log=[{"step": 1, "grad_norm": 2.0}])
    parsed = Parsed.of(page(run))
    figures = [one.text for one in parsed.all("figure")]
    said = {
        title: next(text for text in figures if text.startswith(title))
        for title in (
            *("Monitored: alignment", "Monitored: spread of predicted similarities"),
            *("Monitored: my figure", "Norm of the gradient"),
        )
    }
    expected = (
        "Mean squared distance of positives, 0 to 4; lower is better. From 0.5 at step 1",
        "near 0 nothing is told apart. From 0.5 at step 1",
        "From 0.25 at step 1",
        "before it is cut to train.max_grad_norm, from 0; steady is good. From ",
    )
    assert all(words in text for words, text in zip(expected, said.values(), strict=True)), said
    assert ";" not in said["Monitored: my figure"]
    assert len([text for text in figures if text.startswith("Monitored: ")]) == len(MONITORS) + 1


def test_monitors_are_those_of_the_documentation_with_its_ranges_and_ways() -> None:
    text = (Path(__file__).parents[2] / "docs" / "monitors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(monitor_\w+|grad_norm)` \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    told = {f"monitor_{key}": one for key, one in MONITORS.items()} | {"grad_norm": GRADIENT}
    assert {key: (range, way) for key, _, range, way in rows} == {
        key: (one.range, one.which_way) for key, one in told.items()
    }


def test_without_eval_sets_sentences_stand_where_charts_would() -> None:
    text = Parsed.of(page(made_run([]))).text
    assert "There are no eval sets, so whether the model is better than its base was not measured." in text
    assert "There are no eval sets, so there are no similarities and no examples to show." in text


def test_a_task_without_similarities_or_examples_says_so() -> None:
    clusters = replace(details(kind="clustering"), cosines=None, cloud=None, figure="", better=())
    text = Parsed.of(page(made_run(sets=[clusters]))).text
    assert "This task says of no two texts that they belong together or do not" in text
    assert "This task judges no single example" in text


def test_a_set_of_which_nothing_changed_says_so() -> None:
    text = Parsed.of(page(made_run(sets=[replace(details(), better=())]))).text
    assert "No example got better." in text and "No example got worse." in text


def test_cosines_of_one_kind_only_are_drawn_all_the_same() -> None:
    one = Cosines(np.array([0.5]), np.array([]))
    text = Parsed.of(page(made_run(sets=[replace(details(kind="retrieval"), cosines=(one, one))]))).text
    assert (
        "query and its nearest relevant text (1)" in text and "query and its nearest other text (0)" in text
    )
    assert "There are cosines of one kind only." in text


def test_means_of_cosines_are_told_with_their_sense() -> None:
    low, high = np.array([0.1, 0.3]), np.array([0.7, 0.9])
    text = Parsed.of(
        page(made_run(sets=[replace(details(), cosines=(Cosines(low, high), Cosines(high, low)))]))
    ).text
    assert "Mean 0.20 against 0.80: 0.60 the wrong way round." in text
    assert "Mean 0.80 against 0.20: 0.60 apart." in text


def test_nothing_logged_is_told() -> None:
    text = Parsed.of(page(made_run([], log=[]))).text
    assert "Nothing was logged on the way, so there are no curves" in text


def test_what_is_not_finite_is_left_out_of_a_curve() -> None:
    log = [
        {"step": step, "loss": loss}
        for step, loss in ((1, 2.0), (2, float("nan")), (3, float("inf")), (4, 1.0))
    ]
    made = page(made_run([], log=log))
    assert "From 2 at step 1 to 1 at step 4." in made and "nan" not in made and "inf" not in made


def test_a_long_curve_is_averaged_and_says_so() -> None:
    points, together = averaged([(float(i), 1.0) for i in range(1001)], 500)
    assert len(points) == 334 and together == 3
    log = [{"step": step, "loss": 1.0} for step in range(1001)]
    assert "Each point is the mean of 3 that were logged." in Parsed.of(page(made_run([], log=log))).text


def test_a_last_model_without_figures_is_said_to_have_none() -> None:
    made = Parsed.of(page(made_run(report=report([finding()], final={}))))
    assert "undefined" in [one.text for one in made.all("td")]


def test_what_the_run_was_is_told() -> None:
    found = [finding()]
    training = report(found)["training"] | {"resumed_from": [4], "tokens_per_second": None}
    warnings = [{"step": 7, "warning": "the loss rises"}]
    text = Parsed.of(page(made_run(found, report=report(found, training=training, warnings=warnings)))).text
    for words in (
        "after interruptions, from step 4",
        "20 steps, 2 epochs, in 1 min 30 s with evaluations",
        "the model of step 10, the best by stsb_rho",
        "1.0 GB of main memory",
        "Step 7: the loss rises",
        "1 empty anchor",
        "positive: 3 texts of 4 to 16 tokens, half of them at most 4, 33.3% at the limit, where longer ones are cut.",
        "max_length 16",
    ):
        assert words in text, words
    assert "tokens a second" not in text


def test_what_an_untrained_classifier_makes_of_the_base_is_said() -> None:
    nli = replace(details(kind="nli"), cosines=None, cloud=None, figure="class")
    text = Parsed.of(page(made_run(sets=[nli]))).text
    assert "the base is judged by the classifier as it was when training began" in text
    assert "class 0 → 1; gold class 1" in text
    assert "as it was when training began" not in Parsed.of(page(made_run())).text


def test_as_many_roles_as_there_are_can_be_told_apart() -> None:
    assert len({*TEXT_ROLES}) <= SERIES
    made = page(made_run(lengths={role: np.array([3, 4]) for role in TEXT_ROLES}))
    for number in range(len(TEXT_ROLES)):
        assert f'class="area s{number}"' in made and f".area.s{number}" in style() + ".area.s0"


def test_columns_in_which_nothing_stands_are_left_out() -> None:
    heads = [one.text for one in Parsed.of(page(made_run())).all("th")]
    assert "dropped" in heads and "filtered by where" not in heads and "over the limit" not in heads


def test_a_limit_that_no_text_comes_near_is_not_drawn() -> None:
    text = Parsed.of(page(made_run(max_length=512))).text
    assert "All are far below the limit of 512 tokens." in text and "max_length 512" not in text


def test_warnings_before_and_during_the_training_stand_apart() -> None:
    given = report([finding()])
    given["plan_warnings"] = [{"key": "data.eval.0.source", "message": "8 rows are in training"}]
    given["warnings"] = [{"step": 1200, "warning": "nearly constant"}]
    (box,) = [
        one
        for one in Parsed.of(page(made_run(report=given))).elements
        if one.attributes.get("class") == "warnings"
    ]
    assert (
        "Before the training: warnings" in box.text
        and "data.eval.0.source: 8 rows are in training" in box.text
    )
    assert "While it trained: warnings" in box.text and "Step 1,200: nearly constant" in box.text
