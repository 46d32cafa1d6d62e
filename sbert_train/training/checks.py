"""What a data set must hold, besides the roles that its objective needs."""

from collections.abc import Collection, Sequence

import datasets
import numpy as np

from sbert_train.data.hints import as_mapped
from sbert_train.data.sieve import describe
from sbert_train.data.sources import LoadedSet
from sbert_train.errors import ConfigError, DataError
from sbert_train.model.roles import SIDE_OF_ROLE, SIDES
from sbert_train.objectives.registry import Kind, ObjectiveSpec


def require_fitting(one: LoadedSet, roles: Sequence[str], spec: ObjectiveSpec) -> None:
    """Raise DataError for what the objective cannot be trained on, though its roles are there.

    Args:
        roles: those that the objective uses.
    """
    if spec.kind.batch_is_negatives and len(one.rows) < 2:
        raise DataError(
            f"data set {one.name}: expected at least two rows, for the texts of other rows are the negatives, found "
            f"{len(one.rows)}{_of_which(one)}"
        )
    if "score" in roles:
        _require_scores(one, spec)
    if spec.options.get("hardness") == "hard" and "negative" not in roles:
        raise DataError(
            f"data set {one.name}: hardness hard weighs a row's own negatives, and there are none; map a column to "
            "negative, or take hardness in_batch"
        )
    if "label" in roles:
        _require_labels(one, spec.name, spec.kind)


def _require_scores(one: LoadedSet, spec: ObjectiveSpec) -> None:
    scores = np.asarray(one.rows["score"][:])
    if scores.ndim > 1 and not spec.kind.several_scores:
        raise DataError(
            f"data set {one.name}: objective {spec.name} takes one score a row, found {scores.shape[1]}; map one "
            "column to score"
        )
    if spec.kind.several_scores:
        negatives = len(one.rows[0]["negative"])
        count = scores.shape[1] if scores.ndim > 1 else 1
        if count not in (negatives, negatives + 1):
            raise DataError(
                f"data set {one.name}: objective {spec.name} takes {negatives} scores for {negatives} negatives (what "
                f"the positive is ahead by), or {negatives + 1} (the positive's own first), found {count}; map their "
                "columns to score"
            )
    low, high = spec.kind.score_range
    if scores.min() < low or scores.max() > high:
        raise DataError(
            f"data set {one.name}: its scores reach from {scores.min():g} to {scores.max():g}, but objective "
            f"{spec.name} takes {low:g} to {high:g}; set score_range to the ends of your scale, such as [0, 5]"
        )
    if not spec.kind.several_scores and scores.min() == scores.max():
        raise DataError(
            f"data set {one.name}: expected different scores, found {scores[0]:g}{as_mapped(scores[0])} in all "
            f"{len(scores):,} rows{_of_which(one)}; check `where` and the score column"
        )


def _of_which(one: LoadedSet) -> str:
    """Where the other rows of a set went, where there were any."""
    return f" ({describe(one.name, one.account)})" if one.account.kept < one.account.read else ""


def _require_labels(one: LoadedSet, objective: str, kind: Kind) -> None:
    labels = np.asarray(one.rows["label"][:])
    found = np.unique(labels)
    shown = ", ".join(map(str, found[:8])) + (", ..." if len(found) > 8 else "")
    if kind.labels == "binary" and not set(found) <= {0, 1}:
        raise DataError(
            f"data set {one.name}: objective {objective} takes the labels 0 and 1, found {shown}; filter such rows "
            "with `where`"
        )
    if kind.labels == "classes" and found[0] < 0:
        raise DataError(
            f"data set {one.name}: objective {objective} takes the labels 0, 1, 2, ..., found {shown}; filter such "
            "rows with `where`"
        )
    if len(found) < 2:
        raise DataError(
            f"data set {one.name}: expected at least two different labels, found {shown} in all {len(labels):,} "
            f"rows{_of_which(one)}; check `where` and the label column"
        )
    if kind.pairs_labels and len(found) == len(labels):
        raise DataError(
            f"data set {one.name}: expected several rows of a label, which are each other's positives; found each of "
            f"{len(labels):,} labels once; check the label column"
        )


def require_classes(sets: Sequence[LoadedSet]) -> int:
    """How many classes some sets tell apart: their highest label and one more; DataError where most are unused."""
    labels = np.unique(np.concatenate([np.asarray(one.rows["label"][:]) for one in sets]))
    count = int(labels[-1]) + 1
    if count > 2 * len(labels):
        raise DataError(
            f"data set {', '.join(one.name for one in sets)}: expected the labels 0, 1, 2, ..., found {len(labels):,} "
            f"different ones up to {count - 1:,}; number the classes from 0"
        )
    return count


def require_both_sides(roles: Collection[str]) -> None:
    """Raise ConfigError unless some role is that of queries and another that of documents, for a head each."""
    missing = [side for side in SIDES if not any(SIDE_OF_ROLE.get(role) == side for role in roles)]
    if missing:
        raise ConfigError(
            f"model.head.shared: false, but no training set has a text for the {missing[0]} head, so that it would "
            f"stay random; found the roles {', '.join(sorted(roles))}; set it to true"
        )


def require_same_shape(loaded: Sequence[LoadedSet], tokenised: Sequence[datasets.Dataset]) -> None:
    """Raise DataError unless all rows have the same roles, and as many negatives and scores, as one batch needs."""
    shapes = [_shape(rows) for rows in tokenised]
    for one, shape in zip(loaded, shapes, strict=True):
        if shape != shapes[0]:
            raise DataError(
                f"data.mixing.datasets_per_batch: {loaded[0].name} has {shapes[0]}, but {one.name} has {shape}; sets "
                "that share batches need the same roles: set it to 1"
            )


def _shape(rows: datasets.Dataset) -> str:
    """The roles of some rows, with how many of it a row has where it has several."""
    counts = {role: len(rows[0][role]) for role in ("negative", "score") if role in rows.column_names
              and isinstance(rows[0][role], list)}  # fmt: skip
    return ", ".join(
        role + (f" ({counts[role]} each)" if role in counts else "") for role in sorted(rows.column_names)
    )
