"""The card of a model is text, whatever its names and its configuration hold: no HTML, no link, no other metadata."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sbert_train.config import RunConfig, dump_config
from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.compare import TaskComparison
from sbert_train.export.card import CardFacts, model_card
from tests.tiny import make_encoder

MALICE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](https://evil.example)",
    "![](https://evil.example/pixel.png)",
    "`<script>` ``<b>``",
    "a\n---\nlicense: mit\n---\n<script>",
    "a\n\n# Heading\n\n<script>",
    "a | b | <b>",
    "~~~~\n<script>alert(1)</script>\n~~~~",
    "a\n~~~~~~\n<script>\n```\n<b>\n````",
    "*a* <!-- x -->",
    "\\`<b>\\`",
    "<https://evil.example>",
    "a\r\n\r\n<script>",
]


def tokens(text: str) -> Iterator[Token]:
    """What a reader of CommonMark with tables, in which HTML is allowed, makes of the body of a card."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(body):
        yield token
        yield from token.children or ()


def comparison(name: str) -> TaskComparison:
    figure = {"accuracy": Estimate(0.5, 0.4, 0.6, 1000)}
    return TaskComparison(
        task=name,
        kind="triplet",
        primary_metric="accuracy",
        n=9,
        unit="triplets",
        details={},
        fingerprint="",
        scores={"before": figure, "after": figure},
        differences={"after": figure},
    )


def config(text: str) -> str:
    path = " ".join(text.split())  # of more than a line none is taken
    blocks = {
        "output_dir": path,
        "model": {"base": path, "prompts": {"anchor": text}},
        "data": {
            "train": [{"source": path, "name": "x", "columns": {"anchor": text}, "where": {text: text}}]
        },
        "objective": {"name": "triplet"},
        "train": {text: text},
    }
    return dump_config(RunConfig.model_validate(blocks))


HARMLESS = CardFacts("name", "base", None, [comparison("x")], ["x: 3 rows"], config("x"))


@pytest.mark.parametrize("text", MALICE)
@pytest.mark.parametrize("place", ["name", "base", "results", "data", "config", "prompt"])
def test_nothing_breaks_out_of_its_place(text: str, place: str) -> None:
    spoiled: Any = {"results": [comparison(text)], "data": [text], "config": config(text)}.get(place, text)
    encoder = make_encoder(prompts={text: text} if place == "prompt" else {"x": "x"})
    facts = HARMLESS if place == "prompt" else replace(HARMLESS, **{place: spoiled})
    card = model_card(encoder, facts)

    harmless = [token.type for token in tokens(model_card(make_encoder(prompts={"x": "x"}), HARMLESS))]
    found = [token.type for token in tokens(card)]
    texts = ("text", "text_special", "softbreak")
    assert [kind for kind in found if kind not in texts] == [kind for kind in harmless if kind not in texts]
    assert not {"html_inline", "html_block", "link_open", "image"} & set(found)

    data = ModelCard(card).data
    assert isinstance(data, ModelCardData)
    assert data.license is None and data.library_name == "sentence-transformers"
    if place == "config":
        [fence] = [token for token in tokens(card) if token.type == "fence" and token.info == "yaml"]
        assert yaml.safe_load(fence.content)["model"]["prompts"]["anchor"] == text


def test_the_malice_works_where_it_is_put_in_as_it_is() -> None:
    """The premise: each is something else than text to a reader of Markdown, in one place or another."""
    for text in MALICE:
        spoiled = {
            token.type
            for around in ("{}", "`{}`", "~~~~\n{}\n~~~~\n", "| a |\n|---|\n| {} |\n")
            for token in tokens(around.format(text))
        }
        table = list(tokens(f"| a |\n|---|\n| {text} |\n"))
        assert spoiled & {"html_inline", "html_block", "link_open", "image", "heading_open", "hr"} or (
            sum(token.type == "td_open" for token in table) != 1
        ), text
