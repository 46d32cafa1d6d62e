"""Where the rows of a data set are: a source as the config spells it -> the files or the Hub data set behind it."""

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sbert_train.data.builtin import CONTRAST_FILES
from sbert_train.data.cache import file_digest
from sbert_train.data.hints import did_you_mean, listed
from sbert_train.data.hub import load_from_hub
from sbert_train.data.readers import READERS, RowSource, read_dataset, read_file
from sbert_train.errors import DataError
from sbert_train.paths import expanded

DEFAULT_SPLIT = "train"
BUILTIN_SETS: Mapping[str, Mapping[str, Path]] = {"contrast": CONTRAST_FILES}

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
GLOB = re.compile(r"[*?\[]")
# Files that people do give, and that would otherwise pass for the name of a data set on the Hub.
OTHER_SUFFIXES = {
    *(".txt", ".xls", ".xlsx", ".ods", ".arrow", ".feather", ".pkl", ".pickle", ".py", ".yaml", ".yml"),
    *(".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".ndjson"),
}


@dataclass(frozen=True)
class Builtin:
    """A data set that ships with this package."""

    name: str


@dataclass(frozen=True)
class Files:
    """A file or a glob."""

    pattern: str


@dataclass(frozen=True)
class HubId:
    """A data set on the Hugging Face Hub."""

    repo: str


@dataclass(frozen=True)
class Origin:
    """A source that was found.

    Attributes:
        identity: what tells this content from any other, as JSON can hold it.
        sources: each opens the rows of a file.
    """

    identity: Any
    sources: Sequence[Callable[[], RowSource]]


def classify(source: str) -> Builtin | Files | HubId:
    """Tell by its spelling alone what a source is.

    >>> classify("builtin:contrast")
    Builtin(name='contrast')
    >>> classify("pairs.csv"), classify("data/*.jsonl"), classify("./pairs")
    (Files(pattern='pairs.csv'), Files(pattern='data/*.jsonl'), Files(pattern='./pairs'))
    >>> classify("stanfordnlp/snli")
    HubId(repo='stanfordnlp/snli')

    Raises:
        DataError: it is nothing that can be read.
    """
    if source.startswith("builtin:"):
        return Builtin(source.removeprefix("builtin:"))
    if "://" in source:
        raise DataError(f"source {source!r} is an address; download it and give the path of the file")
    looks_like_a_path = (
        suffix_of(source) in {*READERS, *OTHER_SUFFIXES}
        or GLOB.search(source)
        or source.startswith((".", "~", "/", "\\"))
    )
    if looks_like_a_path or not HUB_ID.fullmatch(source):
        return Files(source)
    return HubId(source)


def find(source: str, subset: str | None, split: str, cache_dir: Path | None) -> Origin:
    """Locate a source; nothing but its identity is read yet, except that a Hub data set is downloaded."""
    kind = classify(source)
    if isinstance(kind, HubId):
        rows = load_from_hub(kind.repo, subset, split, cache_dir)
        # The fingerprint that `datasets` gives: made of the repository, its commit, the subset and the split.
        return Origin(rows._fingerprint, [partial(read_dataset, rows, f"{kind.repo} ({split})")])
    if subset is not None:
        raise DataError(
            f"subset: only Hub data sets have subsets, and {source} is none; leave `subset` out, or set it to null"
        )
    if isinstance(kind, Builtin):
        return of_files([builtin_file(kind.name, split)])
    if split != DEFAULT_SPLIT:
        raise DataError(
            f"split: a file is one split; leave `split` out, or set it to {DEFAULT_SPLIT}, and name the file of the "
            f"split {split!r} as source"
        )
    return of_files(matching_files(kind.pattern))


def of_files(paths: Sequence[Path]) -> Origin:
    """The rows of files one after the other, identified by their formats and contents."""
    identity = [[path.suffix.lower(), file_digest(path)] for path in paths]
    return Origin(identity, [partial(read_file, path) for path in paths])


def builtin_file(name: str, split: str) -> Path:
    """The file of a split of an embedded data set."""
    if name not in BUILTIN_SETS:
        raise DataError(
            f"there is no builtin data set {name!r}{did_you_mean(name, BUILTIN_SETS)}; there are {listed(BUILTIN_SETS)}"
        )
    splits = BUILTIN_SETS[name]
    if split not in splits:
        raise DataError(
            f"builtin:{name} has no split {split!r}{did_you_mean(split, splits)}; it has {listed(splits)}"
        )
    return splits[split]


def matching_files(pattern: str) -> list[Path]:
    """The files of a path or glob, sorted, all of one format that can be read."""
    path = expanded(pattern)
    if path.is_dir():
        raise DataError(f"{path} is a folder; name its files, such as {path}/*.csv")
    if path.is_file():
        paths = [path]
    else:
        # Path.glob takes no absolute pattern.
        found = glob.glob(str(path), recursive=True) if GLOB.search(pattern) else []  # noqa: PTH207
        paths = sorted(match for match in map(Path, found) if match.is_file())
    if not paths:
        what = "no file matches" if GLOB.search(pattern) else "no such file:"
        raise DataError(f"{what} {path}{nearby(path)}")
    for path in paths:
        if path.suffix.lower() not in READERS:
            raise DataError(
                f"{path}: format {path.suffix or 'without a suffix'} is not read; expected one of {listed(READERS)}"
            )
    suffixes = {path.suffix.lower() for path in paths}
    if len(suffixes) > 1:
        raise DataError(
            f"{pattern} matches files of several formats, {listed(sorted(suffixes))}; make it match only one"
        )
    return paths


def nearby(path: Path) -> str:
    """What there is instead of a file that is not there."""
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != path.parent:
        missing = path.parent.relative_to(folder).parts[0]
        return f" (the folder {folder / missing} does not exist)"
    if path.parent == Path() and not path.suffix:
        return "; a data set on the Hub is written organisation/name"
    siblings = sorted(child.name for child in folder.iterdir() if suffix_of(child.name) in READERS)
    return (
        did_you_mean(path.name, siblings) or f"; data files in {folder.resolve()}: {listed(siblings, most=5)}"
    )


def suffix_of(source: str) -> str:
    """The ending of a file name, in lower case: `.csv`."""
    return Path(source).suffix.lower()
