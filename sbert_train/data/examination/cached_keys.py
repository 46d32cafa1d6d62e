"""The keys of the texts of a large set, worked out once and kept in the cache beside its rows."""

import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import datasets
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sbert_train.data.cache import cache_folder, complete_or_absent, fingerprint
from sbert_train.data.examination.text_keys import TextKeys, text_keys

LAYOUT = 1  # to be raised when the same texts come to have other keys
LEAST_ROWS = 20_000
"""Fewer are done in a moment."""
_FILE = "keys.safetensors"


def cached_text_keys(rows: datasets.Dataset, roles: Sequence[str], cache_dir: Path | None = None) -> TextKeys:
    """`text_keys`, or what it gave for the same rows before.

    Args:
        rows: whose fingerprint stands for what is in them, as that of the rows of a `LoadedSet` does.
        cache_dir: as for `load_set`.

    Raises:
        DataError: the cache cannot be written.
    """
    if len(rows) < LEAST_ROWS:
        return text_keys(rows, roles)
    made_from = ("text keys", LAYOUT, rows._fingerprint, list(roles), unicodedata.unidata_version)
    entry = cache_folder(cache_dir) / fingerprint(*made_from)

    def write(folder: Path) -> None:
        keys = text_keys(rows, roles)
        exact = {f"exact {role}": found for role, found in keys.exact.items()}
        near = {f"near {role}": found for role, found in keys.near.items()}
        save_file(exact | near, folder / _FILE)

    def read() -> TextKeys:
        kept = load_file(entry / _FILE)
        exact, near = ({role: kept[f"{kind} {role}"] for role in roles} for kind in ("exact", "near"))
        return TextKeys(exact, near)

    if not entry.is_dir():
        complete_or_absent(entry, write)
    try:
        return read()
    except (OSError, KeyError, SafetensorError):  # cut short by a crash, or touched by somebody
        shutil.rmtree(entry)
        complete_or_absent(entry, write)
        return read()
