"""What every task does with its rows and its name: the checks, and the fingerprint by which results are paired."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from datasets import Dataset

from sbert_train.errors import DataError, EvaluationError


def require_roles(rows: Dataset, roles: Sequence[str], *, task: str, kind: str) -> None:
    """Raise DataError, naming the eval set, unless it has rows and a column for each of the roles."""
    missing = [role for role in roles if role not in rows.column_names]
    if missing:
        raise DataError(
            f"eval set {task!r}: task {kind} needs the roles {', '.join(roles)}, found columns "
            f"{', '.join(rows.column_names) or 'none'}; map {', '.join(missing)} under `columns`"
        )
    if len(rows) == 0:
        raise DataError(
            f"eval set {task!r}: expected rows, found none; check the file, `where`, `split` and `limit`"
        )


@contextmanager
def naming_set(task: str) -> Iterator[None]:
    """Put the name of the eval set before an EvaluationError that is raised in here."""
    try:
        yield
    except EvaluationError as error:
        raise EvaluationError(f"eval set {task!r}: {error}") from error


def fingerprint(*parts: Iterable[object]) -> str:
    """Digest of sequences of texts or numbers, the same for the same values in the same order."""
    digest = hashlib.sha256()
    for part in parts:
        for value in part:
            encoded = repr(value).encode()
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        digest.update(b"\xff" * 8)
    return digest.hexdigest()
