"""Rows on disk, in the cache folder of `datasets`: written once for what they were made from, complete or absent."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
from datasets.table import MemoryMappedTable

from sbert_train import __version__
from sbert_train.data.sieve import RowAccount
from sbert_train.errors import DataError

LAYOUT = 5  # to be raised when the same input comes to give other rows, or another account of them
ROWS, ACCOUNT = "rows.arrow", "account.json"


def cached_rows(
    cache_dir: Path | None, made_from: Any, build: Callable[[Path], RowAccount]
) -> tuple[datasets.Dataset, RowAccount]:
    """The rows that `build` writes, or that it wrote before from the same.

    Args:
        cache_dir: the folder to cache in; None for that of `datasets`.
        made_from: everything that the rows depend on, as JSON can hold it; a hash of it names the entry and is the
            fingerprint of the rows.
        build: writes an Arrow stream to the path that it is given and returns the account of the rows.

    Raises:
        DataError: the cache cannot be written; and whatever `build` raises.
    """
    key = fingerprint(LAYOUT, __version__, made_from)
    entry = cache_folder(cache_dir) / key

    def write(folder: Path) -> None:
        account = build(folder / ROWS)
        (folder / ACCOUNT).write_text(json.dumps(asdict(account)))

    if not entry.is_dir():
        complete_or_absent(entry, write)
    try:
        return open_entry(entry, key)
    except (OSError, ValueError):  # cut short by a crash of the machine, or touched by somebody
        shutil.rmtree(entry)
        complete_or_absent(entry, write)
        return open_entry(entry, key)


def cache_folder(cache_dir: Path | None) -> Path:
    """Where entries lie: in this folder, or in that of `datasets`."""
    return Path(cache_dir or datasets.config.HF_DATASETS_CACHE) / "sbert_train"


def complete_or_absent(entry: Path, build: Callable[[Path], None]) -> None:
    """Have the folder of an entry filled beside it, then renamed, so that an interrupted run leaves nothing that looks
    complete.

    Raises:
        DataError: the cache cannot be written; and whatever `build` raises.
    """
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="unfinished-", dir=entry.parent) as stage:
            unfinished = Path(stage) / entry.name
            unfinished.mkdir()
            build(unfinished)
            try:
                unfinished.rename(entry)
            except OSError:
                if not entry.is_dir():  # otherwise another process was faster, with the same rows
                    raise
    except OSError as problem:
        raise DataError(
            f"the cache {entry.parent} cannot be written: {problem.strerror or problem}; "
            "make room there, or set HF_DATASETS_CACHE to another folder"
        ) from problem


def open_entry(entry: Path, key: str) -> tuple[datasets.Dataset, RowAccount]:
    """The rows and the account of an entry; raises where it is damaged."""
    account = RowAccount(**json.loads((entry / ACCOUNT).read_text()))
    rows = datasets.Dataset(MemoryMappedTable.from_file(str(entry / ROWS)), fingerprint=key)
    if len(rows) != account.kept:  # a stream that ends between two batches is a valid stream
        raise ValueError(f"{entry} holds {len(rows)} rows of {account.kept}")
    return rows, account


def fingerprint(*parts: Any) -> str:
    """32 hex digits that change with any of the parts (values that JSON can hold; others by their text)."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """The sha256 of a file's content, as 64 hex digits.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as problem:
        raise DataError(f"{path} cannot be read: {problem.strerror or problem}") from problem
