"""Small sets for tests, as if they had been read from a source."""

from typing import Any

import datasets
from datasets import Features, List, Value

from sbert_train.data.sieve import RowAccount
from sbert_train.data.sources import LoadedSet

_KINDS: dict[str, Any] = {
    "negative": List(Value("string")),
    "score": Value("float64"),
    "label": Value("int64"),
}


def rows_of(**columns: list[Any]) -> datasets.Dataset:
    """Rows with these roles, typed as a source gives them."""
    kinds = {role: _KINDS.get(role, Value("string")) for role in columns}
    return datasets.Dataset.from_dict(columns, features=Features(kinds))


def loaded(name: str = "pairs", **columns: list[Any]) -> LoadedSet:
    """A set of these rows, all of which were kept."""
    rows = rows_of(**columns)
    account = RowAccount(len(rows), len(rows), 0, 0, {}, {}, {role: [role] for role in columns})
    return LoadedSet(name, rows, account)
