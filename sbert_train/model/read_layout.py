"""Read what a sentence-transformers folder of either layout says, or a plain transformers folder.

Shapes: H hidden size of the backbone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sbert_train.errors import ModelError
from sbert_train.model.layout import (
    MODEL_CONFIG,
    POOLING_NAMES,
    SIMILARITIES,
    TRANSFORMER_CONFIGS,
    DenseLayer,
    Layout,
)
from sbert_train.model.read_files import (
    brief,
    inside,
    kind_of,
    read_json,
    read_object,
    require_safetensors,
    require_shards_inside,
    wrong,
)
from sbert_train.model.read_heads import read_head, read_router, require_sentence_embedding

_KINDS = ("Transformer", "Pooling", "Dense", "Router", "Dropout", "Normalize")
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
SHARDS = "model.safetensors.index.json"
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
        require_sentence_embedding(modules[-1][1])
    head, document_head = _read_heads(modules, width)
    return Layout(
        backbone,
        pooling,
        head=head,
        document_head=document_head,
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
    entries = read_json(file)
    if not isinstance(entries, list) or not all(_is_module(entry) for entry in entries):
        raise wrong(file, "modules", "a list of objects with a path and a type", entries)
    modules = [
        (kind_of(file, entry["type"], _KINDS), inside(file, folder, entry["type"], entry["path"]))
        for entry in entries
    ]
    modules = [(kind, path) for kind, path in modules if kind != "Dropout"]
    kinds = [kind for kind, _ in modules]
    middle = kinds[2:-1] if kinds[-1:] == ["Normalize"] else kinds[2:]
    if kinds[:2] != ["Transformer", "Pooling"] or not (set(middle) <= {"Dense"} or middle == ["Router"]):
        expected = "Transformer, Pooling, any number of Dense or one Router, Normalize or nothing"
        raise wrong(file, "modules", expected, kinds)
    return modules


def _read_heads(
    modules: list[tuple[str, Path]], width: int
) -> tuple[tuple[DenseLayer, ...], tuple[DenseLayer, ...] | None]:
    """The head of every text, or of queries; and that of documents, where they have one of their own."""
    for kind, path in modules:
        if kind == "Router":
            return read_router(path, width)
    return read_head([path for kind, path in modules if kind == "Dense"], width), None


def _is_module(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("path", "type"))


def _require_backbone(folder: Path) -> None:
    adapter, model = ((folder / name).is_file() for name in ("adapter_config.json", "config.json"))
    if adapter and model:
        # transformers would load it where peft is installed and leave it out where it is not: two models in one.
        raise ModelError(
            f"{folder} holds an adapter beside its model: merge it into the model first, or take adapter_config.json "
            "away if it is merged"
        )
    if adapter:
        raise ModelError(f"{folder} holds an adapter without its model: merge it into the base model first")
    if not model:
        raise ModelError(f"{folder} is not a model: it has no config.json; give the folder that save() wrote")
    require_safetensors(folder, "model.safetensors", SHARDS)
    require_shards_inside(folder / SHARDS)


def _read_transformer_config(backbone: Path) -> dict[str, Any]:
    """The file that has max_seq_length and do_lower_case; all else in it must be at its default."""
    file = next((backbone / name for name in TRANSFORMER_CONFIGS if (backbone / name).is_file()), None)
    if file is None:
        return {}
    config = read_object(file)
    for key, default in _TRANSFORMER_DEFAULTS.items():
        if config.get(key) not in (None, default):
            raise wrong(file, f"{key} of module Transformer", brief(default), config[key])
    length = config.get("max_seq_length")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise wrong(file, "max_seq_length", "a number of tokens or null", length)
    return config


def _max_length(backbone: Path, written: int | None) -> int | None:
    """What is written, or else what the tokenizer allows; never more than the backbone has positions for."""
    config = read_object(backbone / "config.json")
    if written is None:
        written = read_object(backbone / "tokenizer_config.json", optional=True).get("model_max_length")
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
    config = read_object(file)
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        found = mode if isinstance(mode, list) else [mode]
        names = {new: name for name, (_, new) in POOLING_NAMES.items()}
    else:
        found = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
        names = {old: name for name, (old, _) in POOLING_NAMES.items()}
    if len(found) != 1 or found[0] not in names:
        raise wrong(file, "module Pooling", f"one of {', '.join(names)}", found)
    if has_prompts and not config.get("include_prompt", True):
        raise wrong(file, "include_prompt of module Pooling", f"true, as {MODEL_CONFIG} has prompts", False)
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    if not isinstance(width, int):
        raise wrong(file, "module Pooling", "a number as embedding_dimension", width)
    return names[found[0]], width


def _read_model_config(folder: Path) -> dict[str, Any]:
    """Prompts, default_prompt_name and similarity_fn_name, each checked."""
    file = folder / MODEL_CONFIG
    config = read_object(file, optional=True)
    kind = config.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise wrong(file, "model_type", "SentenceTransformer", kind)
    if config.get("truncate_dim") is not None:
        raise wrong(file, "truncate_dim", "null, as cut vectors are not supported", config["truncate_dim"])
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise wrong(file, "prompts", "an object of names and texts", prompts)
    default = config.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise wrong(file, "default_prompt_name", f"one of the prompts {brief(list(prompts))}", default)
    similarity = config.get("similarity_fn_name")
    if similarity not in (None, *SIMILARITIES):
        raise wrong(file, "similarity_fn_name", f"one of {', '.join(SIMILARITIES)}", similarity)
    return {
        "prompts": {name: text or "" for name, text in prompts.items()},
        "default_prompt_name": default,
        "similarity_fn_name": similarity,
    }
