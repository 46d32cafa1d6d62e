"""report.html: one file that tells what a run came to. It runs nothing and loads nothing."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from sbert_train.reporting.eval_sets import eval_sets_section
from sbert_train.reporting.html import Html, joined, tag
from sbert_train.reporting.inputs import configuration_section, data_section, versions_section
from sbert_train.reporting.run import Run
from sbert_train.reporting.summary import header, results_section
from sbert_train.reporting.training import training_section


def page(run: Run) -> str:
    """The page of a finished run, as the text of a file in UTF-8."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{run.name}: {run.report['verdict']}"),
        tag("style", style()),
    )
    main = tag(
        "main",
        results_section(run),
        training_section(run),
        eval_sets_section(run.sets),
        data_section(run),
        versions_section(run),
        configuration_section(run),
    )
    body = tag("body", header(run), main)
    return joined(Html("<!doctype html>\n"), tag("html", head, body, lang="en"), Html("\n"))


@cache
def style() -> Html:
    """The style of the page, which ships beside this module."""
    return Html(files("sbert_train.reporting").joinpath("style.css").read_text(encoding="utf-8"))


def _policy() -> str:
    """Nothing may be loaded or run, by whatever a text might smuggle in, but this one style."""
    digest = b64encode(sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
