"""The files of a model folder as they are read: each thing that is not as it must be is named with its file."""

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from sbert_train.errors import ModelError

_SHARD = re.compile(r"[\w.-]+\.safetensors")


def read_object(file: Path, *, optional: bool = False) -> dict[str, Any]:
    """The JSON object in a file; an optional file that is not there counts as an empty one."""
    if optional and not file.is_file():
        return {}
    value = read_json(file)
    if not isinstance(value, dict):
        raise wrong(file, "the file", "a JSON object", value)
    return value


def read_json(file: Path) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{file} is missing: the model is incomplete, copy or download it again") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read as JSON: {error}") from error


def inside(file: Path, folder: Path, module: str, path: str) -> Path:
    """The folder of a module that a file names; an error where it is not within the model's."""
    # By its text only: the files of a Hub cache are links to elsewhere, and must stay readable.
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path or ":" in path:
        raise wrong(file, f"path of module {module}", "a folder within the model's, such as 1_Pooling", path)
    return folder / path


def kind_of(file: Path, reference: str, kinds: tuple[str, ...]) -> str:
    """The class name of a module, whose path differs between the versions of sentence-transformers.

    >>> kind_of(Path("modules.json"), "sentence_transformers.models.Pooling", ("Transformer", "Pooling"))
    'Pooling'
    """
    package, _, name = reference.partition(".")
    kind = name.rpartition(".")[2]
    if package != "sentence_transformers" or kind not in kinds:
        raise wrong(file, "module", f"one of sentence-transformers' {', '.join(kinds)}", reference)
    return kind


def require_safetensors(folder: Path, *names: str) -> None:
    """An error unless one of these files is there."""
    if not any((folder / name).is_file() for name in names):
        found = "pytorch_model.bin" if (folder / "pytorch_model.bin").is_file() else "no weights"
        raise ModelError(
            f"{folder}: expected model.safetensors, found {found}; pickled weights can run code and are not "
            "read: save the model again with safetensors"
        )


def require_shards_inside(index: Path) -> None:
    """An error where an index of weights, if it is there, names anything but safetensors files beside it."""
    shards = read_object(index, optional=True).get("weight_map", {})
    if not isinstance(shards, dict):
        raise wrong(index, "weight_map", "an object of weights and their files", shards)
    for shard in shards.values():
        if not (isinstance(shard, str) and _SHARD.fullmatch(shard)):
            raise wrong(
                index, "weight_map", "safetensors files beside it, such as model-1.safetensors", shard
            )


def wrong(file: Path, what: str, expected: str, found: object) -> ModelError:
    """The error that a file says something else than it must."""
    return ModelError(f"{file}: {what}: expected {expected}; found {brief(found)}")


def brief(value: object) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else text[:117] + "..."
