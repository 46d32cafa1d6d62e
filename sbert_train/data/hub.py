"""Data sets from the Hugging Face Hub, and one clear line for everything that can be wrong with them."""

import re
from collections.abc import Callable
from pathlib import Path

import datasets
import yaml
from datasets.exceptions import DatasetNotFoundError, DatasetsError
from huggingface_hub import constants, get_session

from sbert_train.data.hints import did_you_mean, listed
from sbert_train.data.quiet import quiet_libraries
from sbert_train.errors import DataError

REACH_SECONDS = 10.0


def load_from_hub(repo: str, subset: str | None, split: str, cache_dir: Path | None) -> datasets.Dataset:
    """Download a split of a data set, or take it from the cache.

    Args:
        repo: `organisation/name`; no code of the repository is run.
        subset: the configuration of the data set; None where it has only one.
        split: a split, or a slice of one such as `train[:1000]`.
        cache_dir: where `datasets` keeps what it has loaded; None for its own place.

    Raises:
        DataError: the Hub cannot be reached, or it has no such data set, subset or split; or a path of that name is
            here, which `datasets` would take instead.
    """
    if Path(repo).exists():
        raise DataError(
            f"{repo} is a path here; name files with their suffix, such as {repo}/*.csv, "
            "or run in another folder to read the data set of that name from the Hub"
        )
    check_reachable(repo)
    try:
        with quiet_libraries(progress=True):
            rows = datasets.load_dataset(
                repo, subset, split=split, cache_dir=None if cache_dir is None else str(cache_dir)
            )
    except DatasetNotFoundError as problem:
        raise not_found(repo) from problem
    except ConnectionError as problem:
        raise unreachable(repo, problem) from problem
    except (DatasetsError, yaml.YAMLError, ValueError, RuntimeError, OSError) as problem:
        raise explained(repo, subset, split, problem) from problem
    assert isinstance(rows, datasets.Dataset)
    return rows


def check_reachable(repo: str) -> None:
    """Fail at once where the Hub cannot be reached; the libraries would try again for half a minute."""
    if constants.HF_HUB_OFFLINE:
        return
    # Which exceptions there are depends on the HTTP library that the Hub's client uses.
    try:
        get_session().head(constants.ENDPOINT, timeout=REACH_SECONDS)
    except Exception as problem:
        raise unreachable(repo, problem) from problem


def unreachable(repo: str, problem: Exception) -> DataError:
    """What to do when the Hub does not answer, or is switched off."""
    if constants.HF_HUB_OFFLINE:
        return DataError(
            f"the Hub is switched off (HF_HUB_OFFLINE) and {repo!r} is not in the cache; "
            "unset HF_HUB_OFFLINE or use a file as source"
        )
    return DataError(
        f"cannot reach the Hub at {constants.ENDPOINT} for the data set {repo!r} ({problem}); "
        "use a file as source, or set HF_HUB_OFFLINE=1 if the data set is in the cache"
    )


def not_found(repo: str) -> DataError:
    """The Hub answered that it has no such data set, or shows none to this user."""
    return DataError(
        f"the Hub at {constants.ENDPOINT} has no data set {repo!r}; check the name, "
        "and set HF_TOKEN if it is private or gated"
    )


def explained(repo: str, subset: str | None, split: str, problem: Exception) -> DataError:
    """Say which subsets or splits there are, if that is what is wrong; else what the library said."""
    subsets = names_or_none(lambda: datasets.get_dataset_config_names(repo))
    if subsets and subset is None and len(subsets) > 1 and "default" not in subsets:
        return DataError(
            f"the data set {repo!r} has several subsets; set `subset` to one of {listed(subsets)}"
        )
    if subsets and subset is not None and subset not in subsets:
        return DataError(
            f"the data set {repo!r} has no subset {subset!r}{did_you_mean(subset, subsets)}; it has {listed(subsets)}"
        )
    splits = names_or_none(lambda: datasets.get_dataset_split_names(repo, subset))
    wanted = re.split(r"\[|\+", split)[0]
    if splits and wanted not in splits:
        return DataError(
            f"the data set {repo!r} has no split {wanted!r}{did_you_mean(wanted, splits)}; it has {listed(splits)}"
        )
    cause = problem.__cause__ or problem
    said = str(cause).strip().splitlines() or [type(cause).__name__]
    return DataError(f"the data set {repo!r} (subset {subset}, split {split}) cannot be loaded: {said[0]}")


def names_or_none(ask: Callable[[], list[str]]) -> list[str] | None:
    """What the Hub answers, or None where it cannot be asked."""
    try:
        with quiet_libraries(progress=False):
            return ask()
    except (DatasetsError, yaml.YAMLError, ValueError, RuntimeError, OSError):
        return None
