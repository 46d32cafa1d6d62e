"""The end of the page: what the run was made of."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np

from sbert_train.reporting.charts import SERIES, Frame, Mark, histogram, legend
from sbert_train.reporting.html import Child, Html, tag
from sbert_train.reporting.run import Run
from sbert_train.reporting.words import facts, figure, section, table

BINS = 32


def data_section(run: Run) -> Html:
    """What became of the rows, and how long the training texts are."""
    sets = run.report["data"]
    figures = {
        "read": "rows read",
        "kept": "kept",
        "filtered": "filtered by where",
        "limited": "over the limit",
    }
    reasons = {"dropped": "dropped", "kept_with": "kept all the same"}
    columns = {
        key: name
        for key, name in (figures | reasons).items()
        if key in ("read", "kept") or any(one[key] for one in sets)
    }
    rows: list[list[Child]] = [
        [
            tag("strong", one["set"]),
            one["use"],
            *(_reasons(one[key]) if key in reasons else f"{one[key]:,}" for key in columns),
        ]
        for one in sets
    ]
    return section(
        "data",
        "Data",
        table(("set", "used for", *columns.values()), rows, caption="What became of the rows of each set"),
        _lengths(run),
    )


def configuration_section(run: Run) -> Html:
    """The configuration that repeats the run."""
    return section(
        "configuration", "Configuration", tag("pre", tag("code", run.config.strip()), tabindex="0")
    )


def versions_section(run: Run) -> Html:
    """With what it was made."""
    versions = run.report["versions"]
    pairs = [("Python", versions["python"]), ("Machine", versions["machine"]), *versions["packages"].items()]
    return section("versions", "Versions", facts(pairs))


def _reasons(dropped: Mapping[str, int]) -> str:
    return "; ".join(f"{number:,} {reason}" for reason, number in dropped.items()) or "0"


def _lengths(run: Run) -> Html:
    lengths = {role: found for role, found in run.lengths.items() if len(found)}
    if not lengths:
        return tag("p", "There are no training texts whose tokens could be counted.")
    longest = max(int(found.max()) for found in lengths.values())
    limit = run.max_length if run.max_length is not None and run.max_length <= 2 * longest else None
    top = max(longest, limit or 0)
    width = max(1, ceil((top + 1) / BINS))
    edges = np.arange(0, top + 1 + width, width)
    shares: list[tuple[str, Any]] = [
        (role, (np.histogram(found, edges)[0] / len(found)).tolist()) for role, found in lengths.items()
    ][:SERIES]
    words = " ".join(
        f"{role}: {len(found):,} texts of {found.min():,} to {found.max():,} tokens, half of them at most "
        f"{int(np.median(found)):,}{_at_limit(found, run.max_length)}."
        for role, found in lengths.items()
    )
    if limit is None and run.max_length is not None:
        words += f" All are far below the limit of {run.max_length:,} tokens."
    title = "Tokens of the training texts"
    mark = None if limit is None else Mark(limit, f"max_length {limit}")
    drawn = histogram(Frame("lengths", title, words, "tokens"), edges.tolist(), shares, mark=mark, whole=True)
    return tag(
        "div",
        figure(title, drawn, legend([role for role, _ in shares], kind="area"), words),
        class_="charts pairs",
    )


def _at_limit(found: Any, limit: int | None) -> str:
    """How many have as many tokens as are read at most, of which most have lost some."""
    share = 0.0 if limit is None else float((found >= limit).mean())
    return f", {share:.1%} at the limit, where longer ones are cut" if share else ""
