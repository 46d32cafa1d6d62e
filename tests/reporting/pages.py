"""A page made by hand, and what a browser would make of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np

from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.results import Cosines
from sbert_train.reporting.details import Cloud, Example, SetDetails
from sbert_train.reporting.run import Run
from sbert_train.reporting.verdict import Finding, verdict

VOID = {"meta", "link", "br", "img", "input", "hr"}


def finding(
    set: str = "stsb", metric: str = "rho", change: tuple[float, float, float] = (0.04, 0.03, 0.05)
) -> Finding:
    return Finding(set, metric, Estimate(*change, resamples=1000), selects=True, is_primary=True)


def details(name: str = "stsb", text: str = "a cat", kind: str = "sts") -> SetDetails:
    """One example that improved and none that got worse."""
    both = Cosines(np.array([0.7, 0.9]), np.array([0.1, 0.3, 0.2]))
    return SetDetails(
        name=name,
        kind=kind,
        cosines=(both, both),
        cloud=Cloud(2, [0.0, 1.0], [0.1, 0.5], [0.2, 0.9]),
        figure="cosine",
        better=(Example((("sentence1", text), ("sentence2", text)), 0.2, 0.8, 1.0, 0.6),),
        worse=(),
    )


def report(findings: Sequence[Finding], **changed: Any) -> dict[str, Any]:
    figures = {one.set: {one.metric: 0.8} for one in findings}
    return {
        "verdict": verdict(findings),
        "selected_by": "stsb_rho",
        "base": "org/base",
        "seed": 1,
        "baseline": figures,
        "best": figures,
        "final": figures,
        "deltas": {one.set: {one.metric: {"value": 0.04, "low": 0.03, "high": 0.05}} for one in findings},
        "training": {
            "steps": 20,
            "epochs": 2.0,
            "train_runtime": 90.0,
            "pairs_per_second": 7.5,
            "tokens_per_second": 1234.0,
            "device": "cpu",
            "peak_memory_bytes": 10**9,
            "best_step": 10,
            "resumed_from": [],
        },
        "monitors": [],
        "plan_warnings": [],
        "warnings": [],
        "data": [
            {
                "set": "pairs",
                "use": "training",
                "read": 9,
                "kept": 8,
                "filtered": 0,
                "limited": 0,
                "dropped": {"empty anchor": 1},
                "kept_with": {},
            }
        ],
        "versions": {"python": "3.11", "machine": "Linux", "packages": {"torch": "2.13"}},
        **changed,
    }


def made_run(findings: Sequence[Finding] | None = None, **changed: Any) -> Run:
    """A finished run; `changed` are fields of Run."""
    findings = [finding()] if findings is None else findings
    values: dict[str, Any] = {
        "name": "mine",
        "report": report(findings),
        "findings": findings,
        "log": [
            {"step": step, "epoch": step / 10, "loss": 1 / step, "learning_rate": 1e-5} for step in (1, 2, 3)
        ],
        "sets": [details()] if findings else [],
        "lengths": {"anchor": np.array([4, 5, 9]), "positive": np.array([4, 4, 16])},
        "max_length": 16,
        "config": "seed: 1\n",
    }
    return Run(**(values | changed))


@dataclass
class Element:
    name: str
    attributes: Mapping[str, str | None]
    text: str = ""
    """Of it and of all in it."""


@dataclass
class Parsed(HTMLParser):
    """The elements of a page, in order."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, page: str) -> "Parsed":
        parsed = cls()
        parsed.feed(page)
        parsed.close()
        assert not parsed._open, "every element is closed"
        return parsed

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().name == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, name: str) -> list[Element]:
        return [one for one in self.elements if one.name == name]

    @property
    def text(self) -> str:
        return self.all("body")[0].text
