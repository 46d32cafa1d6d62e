"""Read what a sentence-transformers folder of either layout says, or a plain transformers folder.

Shapes: H hidden size of the backbone.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from sbert_train.errors import ModelError
from sbert_train.model.layout import (
    ACTIVATIONS,
    MODEL_CONFIG,
    POOLING_NAMES,
    SIMILARITIES,
    TRANSFORMER_CONFIGS,
    DenseLayer,
    Layout,
    activation_path,
)

_KINDS = ("Transformer", "Pooling", "Dense", "Dropout", "Normalize")
_TRANSFORMER_DEFAULTS: Mapping[str, object] = {
    "transformer_task": "feature-extraction",
    "module_output_name": "token_embeddings",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "processing_kwargs": {},
    "processor_kwargs": {},
    "tokenizer_args": {},
    "config_kwargs": {},
    "config_args": {},
    "query_length": None,
    "document_length": None,
    "query_expansion": None,
}
_NO_LIMIT = 10**9  # a tokenizer without a maximum writes int(1e30)
# These count positions from padding_idx + 1, so their table of 514 rows holds 512 tokens.
_OFFSET_POSITIONS = frozenset(
    ["camembert", "longformer", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl"]
)


def read_layout(folder: Path) -> Layout:
    """Read a sentence-transformers folder of either layout, or a plain transformers folder.

    Raises:
        ModelError: there is no model, its weights are pickled, a file is broken, or the folder says something
            that a Layout cannot; the message names the file and the module.
    """
    if not (folder / "modules.json").is_file():
        _require_backbone(folder)
        return Layout(folder, pooling=None, max_length=_max_length(folder, None))

    modules = _read_modules(folder)
    backbone = modules[0][1]
    _require_backbone(backbone)
    transformer = _read_transformer_config(backbone)
    model = _read_model_config(folder)
    pooling, width = _read_pooling(modules[1][1], has_prompts=any(model["prompts"].values()))
    normalize = modules[-1][0] == "Normalize"
    if normalize:
        _require_sentence_embedding(modules[-1][1])
    return Layout(
        backbone,
        pooling,
        head=_read_head([path for kind, path in modules if kind == "Dense"], width),
        normalize=normalize,
        max_length=_max_length(backbone, transformer.get("max_seq_length")),
        prompts=model["prompts"],
        default_prompt_name=model["default_prompt_name"],
        similarity=model["similarity_fn_name"],
        do_lower_case=bool(transformer.get("do_lower_case")),
    )


def _read_modules(folder: Path) -> list[tuple[str, Path]]:
    """The kind and folder of each module but Dropout, in an order that a Layout can say."""
    file = folder / "modules.json"
    entries = _read_json(file)
    if not isinstance(entries, list) or not all(_is_module(entry) for entry in entries):
        raise _wrong(file, "modules", "a list of objects with a path and a type", entries)
    modules = [
        (_kind(file, entry["type"]), _inside(file, folder, entry["type"], entry["path"])) for entry in entries
    ]
    modules = [(kind, path) for kind, path in modules if kind != "Dropout"]
    kinds = [kind for kind, _ in modules]
    middle = kinds[2:-1] if kinds[-1:] == ["Normalize"] else kinds[2:]
    if kinds[:2] != ["Transformer", "Pooling"] or any(kind != "Dense" for kind in middle):
        raise _wrong(
            file, "modules", "Transformer, Pooling, any number of Dense, Normalize or nothing", kinds
        )
    return modules


def _is_module(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("path", "type"))


def _kind(file: Path, reference: str) -> str:
    package, _, name = reference.partition(".")
    kind = name.rpartition(".")[2]
    if package != "sentence_transformers" or kind not in _KINDS:
        raise _wrong(file, "module", f"one of sentence-transformers' {', '.join(_KINDS)}", reference)
    return kind


def _inside(file: Path, folder: Path, module: str, path: str) -> Path:
    # By its text only: the files of a Hub cache are links to elsewhere, and must stay readable.
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path or ":" in path:
        raise _wrong(file, f"path of module {module}", "a folder within the model's, such as 1_Pooling", path)
    return folder / path


def _require_backbone(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        if (folder / "adapter_config.json").is_file():
            raise ModelError(
                f"{folder} holds an adapter without its model: merge it into the base model first"
            )
        raise ModelError(f"{folder} is not a model: it has no config.json; give the folder that save() wrote")
    _require_safetensors(folder, "model.safetensors", "model.safetensors.index.json")


def _require_safetensors(folder: Path, *names: str) -> None:
    if not any((folder / name).is_file() for name in names):
        found = "pytorch_model.bin" if (folder / "pytorch_model.bin").is_file() else "no weights"
        raise ModelError(
            f"{folder}: expected model.safetensors, found {found}; pickled weights can run code and are not "
            "read: save the model again with safetensors"
        )


def _read_transformer_config(backbone: Path) -> dict[str, Any]:
    """The file that has max_seq_length and do_lower_case; all else in it must be at its default."""
    file = next((backbone / name for name in TRANSFORMER_CONFIGS if (backbone / name).is_file()), None)
    if file is None:
        return {}
    config = _read_object(file)
    for key, default in _TRANSFORMER_DEFAULTS.items():
        if config.get(key) not in (None, default):
            raise _wrong(file, f"{key} of module Transformer", _brief(default), config[key])
    length = config.get("max_seq_length")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise _wrong(file, "max_seq_length", "a number of tokens or null", length)
    return config


def _max_length(backbone: Path, written: int | None) -> int | None:
    """What is written, or else what the tokenizer allows; never more than the backbone has positions for."""
    config = _read_object(backbone / "config.json")
    if written is None:
        written = _read_object(backbone / "tokenizer_config.json", optional=True).get("model_max_length")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _OFFSET_POSITIONS:
        # MPNet has its padding index in its code, whatever the config says.
        positions -= 2 if config["model_type"] == "mpnet" else config.get("pad_token_id", 1) + 1
    # Some architectures write -1 positions for "no limit".
    limits = [int(n) for n in (written, positions) if isinstance(n, int | float) and 0 < n < _NO_LIMIT]
    return min(limits, default=None)


def _read_pooling(folder: Path, *, has_prompts: bool) -> tuple[str, int]:
    """Our name of the pooling, and the width H that it takes."""
    file = folder / "config.json"
    config = _read_object(file)
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        found = mode if isinstance(mode, list) else [mode]
        names = {new: name for name, (_, new) in POOLING_NAMES.items()}
    else:
        found = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
        names = {old: name for name, (old, _) in POOLING_NAMES.items()}
    if len(found) != 1 or found[0] not in names:
        raise _wrong(file, "module Pooling", f"one of {', '.join(names)}", found)
    if has_prompts and not config.get("include_prompt", True):
        raise _wrong(file, "include_prompt of module Pooling", f"true, as {MODEL_CONFIG} has prompts", False)
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    if not isinstance(width, int):
        raise _wrong(file, "module Pooling", "a number as embedding_dimension", width)
    return names[found[0]], width


def _read_head(folders: Iterable[Path], width: int) -> tuple[DenseLayer, ...]:
    layers = []
    for folder in folders:
        layer = _read_dense(folder)
        if layer.in_features != width:
            raise _wrong(folder / "config.json", "in_features of module Dense", str(width), layer.in_features)
        layers.append(layer)
        width = layer.out_features
    return tuple(layers)


def _read_dense(folder: Path) -> DenseLayer:
    _require_sentence_embedding(folder)
    file, weights = folder / "config.json", folder / "model.safetensors"
    config = _read_object(file)
    if config.get("use_residual"):
        raise _wrong(file, "use_residual of module Dense", "false", True)
    _require_safetensors(folder, weights.name)
    try:
        tensors = load_file(weights)
    except SafetensorError as error:
        raise ModelError(f"{weights} is not a safetensors file ({error}): copy the model again") from error
    sizes = config.get("out_features"), config.get("in_features")
    expected = {"linear.weight": sizes} | ({"linear.bias": sizes[:1]} if config.get("bias", True) else {})
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != expected:
        raise _wrong(weights, "module Dense", _brief(expected), found)
    return DenseLayer(
        weight=tensors["linear.weight"].float(),
        bias=tensors["linear.bias"].float() if "linear.bias" in tensors else None,
        activation=_activation(file, config.get("activation_function", activation_path("tanh"))),
    )


def _require_sentence_embedding(folder: Path) -> None:
    config = _read_object(folder / "config.json", optional=True)
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise _wrong(
                folder / "config.json", key, "sentence_embedding, for a module of texts", config[key]
            )


def _activation(file: Path, path: object) -> str:
    paths = {activation_path(name): name for name in ACTIVATIONS}
    short = {f"torch.nn.{path.rpartition('.')[2]}": name for path, name in paths.items()}
    if path not in paths | short:
        raise _wrong(file, "activation_function of module Dense", f"one of {', '.join(paths)}", path)
    return (paths | short)[str(path)]


def _read_model_config(folder: Path) -> dict[str, Any]:
    """Prompts, default_prompt_name and similarity_fn_name, each checked."""
    file = folder / MODEL_CONFIG
    config = _read_object(file, optional=True)
    kind = config.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise _wrong(file, "model_type", "SentenceTransformer", kind)
    if config.get("truncate_dim") is not None:
        raise _wrong(file, "truncate_dim", "null, as cut vectors are not supported", config["truncate_dim"])
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise _wrong(file, "prompts", "an object of names and texts", prompts)
    default = config.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise _wrong(file, "default_prompt_name", f"one of the prompts {_brief(list(prompts))}", default)
    similarity = config.get("similarity_fn_name")
    if similarity not in (None, *SIMILARITIES):
        raise _wrong(file, "similarity_fn_name", f"one of {', '.join(SIMILARITIES)}", similarity)
    return {
        "prompts": {name: text or "" for name, text in prompts.items()},
        "default_prompt_name": default,
        "similarity_fn_name": similarity,
    }


def _read_object(file: Path, *, optional: bool = False) -> dict[str, Any]:
    """The JSON object in a file; an optional file that is not there counts as an empty one."""
    if optional and not file.is_file():
        return {}
    value = _read_json(file)
    if not isinstance(value, dict):
        raise _wrong(file, "the file", "a JSON object", value)
    return value


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{file} is missing: the model is incomplete, copy or download it again") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read as JSON: {error}") from error


def _wrong(file: Path, what: str, expected: str, found: object) -> ModelError:
    return ModelError(f"{file}: {what}: expected {expected}; found {_brief(found)}")


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else text[:117] + "..."
