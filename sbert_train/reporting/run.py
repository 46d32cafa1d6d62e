"""What a page is made of: plain values of a finished run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sbert_train.evaluation.metrics import Array
from sbert_train.reporting.details import SetDetails
from sbert_train.reporting.verdict import Finding


@dataclass(frozen=True)
class Run:
    """A finished run."""

    name: str
    report: Mapping[str, Any]
    """What report.json holds."""
    findings: Sequence[Finding]
    """What the verdict is made of."""
    log: Sequence[Mapping[str, Any]]
    """The entries of log.jsonl."""
    sets: Sequence[SetDetails]
    lengths: Mapping[str, Array]
    """Role -> tokens of each training text."""
    max_length: int | None
    """Tokens of a text that the model reads; None for all."""
    config: str
    """The configuration, in YAML, with `${NAME}` for what came from the environment."""
