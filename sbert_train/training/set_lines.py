"""What the plan tells of a set, in lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sbert_train.data.examination.facts import SetFacts
from sbert_train.data.examination.lengths import SAMPLED_ROWS
from sbert_train.data.examination.targets import Scores
from sbert_train.errors import printable

_SHOWN = 48  # characters of a text in a sample row
_LABELS = 8


def set_lines(facts: SetFacts) -> list[str]:
    """The lines below that of a set's account."""
    lines = [("columns", _columns(facts)), *(("row", _row(row)) for row in facts.samples)]
    lines += [("texts", _texts(facts)), ("tokens", _lengths(facts))]
    if facts.scores is not None:
        lines.append(("scores", _scores(facts.scores)))
    if facts.labels:
        lines.append(("labels", _labels(facts)))
    if facts.false_negatives is not None:
        lines.append(("negative", _false_negatives(facts)))
    lines += [("overlap", one) for one in _overlaps(facts)]
    return [f"  {name:<9}{text}" for name, text in lines if text]


def _columns(facts: SetFacts) -> str:
    found = facts.account.columns
    roles = [role for role in facts.samples[0] if role != "row"] if facts.samples else list(found)
    return ", ".join(
        role if list(found.get(role, [role])) == [role] else f"{role} = {' + '.join(map(repr, found[role]))}"
        for role in roles
    )


def _row(row: Mapping[str, Any]) -> str:
    values = (f"{role} {_value(value)}" for role, value in row.items() if role != "row")
    return f"{row['row']:,}: {', '.join(values)}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " | ".join(map(_value, value))
    if isinstance(value, float):
        return f"{value:.3g}"
    if not isinstance(value, str):
        return str(value)
    text = " ".join(value.split())
    return printable(f"'{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}'")


def _texts(facts: SetFacts) -> str:
    repeats = facts.repeats
    parts = [f"{repeats.texts:,}, {repeats.distinct_texts:,} different"]
    if repeats.near_texts:
        parts[0] += f" ({repeats.near_texts:,} of them from another in case, spacing or punctuation only)"
    repeated = repeats.rows + repeats.near_rows
    near = f" ({repeats.near_rows:,} but for case, spacing or punctuation)" if repeats.near_rows else ""
    parts.append(
        f"{repeated:,} {'row repeats' if repeated == 1 else 'rows repeat'} another{near}"
        if repeated
        else "no row repeats another"
    )
    if repeats.contradicting:
        parts.append(
            f"{repeats.contradicting:,} of the same texts have different {'scores' if facts.scores else 'labels'}"
        )
    return "; ".join(parts)


def _lengths(facts: SetFacts) -> str:
    roles = facts.lengths.values()
    told = [
        f"{role} median {one.half}, 95% {one.most}, 99% {one.nearly_all}, longest {one.longest}"
        + (" or more" if one.cut_off else "")
        + (f", {one.truncated:.1%} cut" if one.truncated else "")
        for role, one in facts.lengths.items()
    ]
    cut = "" if any(one.truncated for one in roles) else "; none is cut"
    sample = "" if all(one.is_all for one in roles) else f" (of {SAMPLED_ROWS:,} rows)"
    return "; ".join(told) + cut + sample


def _scores(scores: Scores) -> str:
    low, high = scores.scale
    shares = _shares(scores.histogram)
    guess = (
        "on no usual scale"
        if scores.guess is None
        else f"as on a scale of {scores.guess[0]:g} to {scores.guess[1]:g}"
    )
    told = (
        "no score_range: taken as they are"
        if scores.score_range is None
        else f"score_range [{scores.score_range[0]:g}, {scores.score_range[1]:g}]"
    )
    return (
        f"{scores.lowest:g} to {scores.highest:g}, mean {scores.mean:.3g}, {guess}; {told}; "
        f"in fifths of {low:g} to {high:g}: {', '.join(shares)}"
    )


def _labels(facts: SetFacts) -> str:
    shares = [f"{one.rows / facts.account.kept:.0%}" for one in facts.labels]
    told = [
        f"{one.label if one.name is None else one.name}: {one.rows:,} ({share})"
        for one, share in zip(facts.labels, shares, strict=True)
    ]
    rest = len(told) - _LABELS + facts.more_labels
    return ", ".join(told[:_LABELS]) + (f" and {rest:,} more labels" if rest > 0 else "")


def _shares(counts: Sequence[int]) -> list[str]:
    total = sum(counts)
    return [f"{count / total:.0%}" if total else "0%" for count in counts]


def _false_negatives(facts: SetFacts) -> str:
    found = facts.false_negatives
    assert found is not None
    told = (
        (found.equal_positive, "that is the positive"),
        (found.positive_elsewhere, "that is a positive of the same anchor elsewhere"),
        (found.equal_anchor, "that is the anchor"),
    )
    counted = [
        f"{count:,} {'row has' if count == 1 else 'rows have'} one {what}" for count, what in told if count
    ]
    return ", ".join(counted) or "none equals its anchor, its positive or another positive of its anchor"


def _overlaps(facts: SetFacts) -> Iterator[str]:
    for one in facts.overlaps:
        seen = [
            *([f"{one.seen_rows:,} of {one.rows:,} rows"] if one.seen_rows else []),
            *([f"{one.seen_texts:,} of {one.texts:,} texts"] if one.seen_texts else []),
        ]
        yield f"with {one.train}: {' and '.join(seen) or 'none'}"
