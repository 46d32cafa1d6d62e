"""Rows of anchors and texts -> which text is relevant to which anchor."""

from collections.abc import Iterator

from datasets import Dataset

from sbert_train.errors import DataError


def judgements(rows: Dataset, *, task: str) -> Iterator[tuple[str, str, bool]]:
    """(anchor, text, whether it is relevant) of each positive and negative, in the order of the rows.

    A positive is relevant unless the row has label 0; a negative never is. A text may come again for its anchor,
    and be called otherwise there.

    Raises DataError, naming the eval set, for a label other than 0 and 1, or a negative that is no list.
    """
    labels = rows["label"][:] if "label" in rows.column_names else [1] * len(rows)
    negatives = negatives_of(rows, task=task) if "negative" in rows.column_names else [[]] * len(rows)
    for anchor, positive, others, label in zip(
        rows["anchor"][:], rows["positive"][:], negatives, labels, strict=True
    ):
        if label not in (0, 1):
            raise DataError(
                f"eval set {task!r}: expected label 1 (relevant) or 0 (not), found {label!r}; "
                "filter such rows with `where`"
            )
        yield anchor, positive, bool(label)
        for other in others:
            yield anchor, other, False


def negatives_of(rows: Dataset, *, task: str) -> list[list[str]]:
    """The negatives of each row; DataError, naming the eval set, where they are no list of texts."""
    negatives: list[list[str]] = rows["negative"][:]
    for texts in negatives:
        if isinstance(texts, str):
            raise DataError(
                f"eval set {task!r}: expected a list of texts as negative, found the text "
                f"{texts[:40]!r}; put it into a list"
            )
    return negatives
