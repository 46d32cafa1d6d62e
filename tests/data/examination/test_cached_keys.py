"""The keys of a large set are worked out once."""

from pathlib import Path
from typing import Any

import pytest

from sbert_train.data.examination import cached_keys
from sbert_train.data.examination.cached_keys import cached_text_keys
from sbert_train.data.examination.text_keys import TextKeys, text_keys
from tests.data.examination.sets import rows_of

ROLES = ["anchor", "negative"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A note for each time that keys are worked out."""
    calls: list[Any] = []

    def counted(rows: Any, roles: Any) -> TextKeys:
        calls.append(roles)
        return text_keys(rows, roles)

    monkeypatch.setattr(cached_keys, "text_keys", counted)
    return calls


def same(one: TextKeys, other: TextKeys) -> bool:
    return all(
        (mine[role] == theirs[role]).all() and mine[role].shape == theirs[role].shape
        for mine, theirs in ((one.exact, other.exact), (one.near, other.near))
        for role in ROLES
    )


def test_of_a_large_set_they_are_found_again_and_of_other_rows_made_anew(
    made: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_keys, "LEAST_ROWS", 3)
    rows = rows_of(anchor=["A cat", "a cat", "b"], negative=[["x", "y"], ["y", "x"], ["z", "z"]])
    first, again = (cached_text_keys(rows, ROLES, tmp_path) for _ in range(2))
    assert len(made) == 1 and same(first, again) and same(first, text_keys(rows, ROLES))
    cached_text_keys(rows, ["anchor"], tmp_path)
    cached_text_keys(rows_of(anchor=["1", "2", "3"], negative=[["x"]] * 3), ROLES, tmp_path)
    assert len(made) == 3


@pytest.mark.parametrize("damage", ["cut", "emptied", "removed"])
def test_what_was_damaged_is_made_again(
    damage: str, made: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_keys, "LEAST_ROWS", 1)
    rows = rows_of(anchor=["a"], negative=[["x", "y"]])
    first = cached_text_keys(rows, ROLES, tmp_path)
    (file,) = tmp_path.rglob("keys.safetensors")
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:100] if damage == "cut" else b"")
    assert same(first, cached_text_keys(rows, ROLES, tmp_path)) and len(made) == 2
    assert same(first, cached_text_keys(rows, ROLES, tmp_path)) and len(made) == 2, "it is whole again"


def test_of_a_small_set_nothing_is_kept(made: list[Any], tmp_path: Path) -> None:
    for _ in range(2):
        cached_text_keys(rows_of(anchor=["a"], negative=[["b"]]), ROLES, tmp_path)
    assert len(made) == 2 and not any(tmp_path.iterdir())
