"""Write a sentence-transformers folder in the layout that all its versions load.

Shapes: H hidden size of the backbone.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

from sbert_train.model.layout import (
    MODEL_CONFIG,
    POOLING_NAMES,
    ROUTER_CONFIG,
    TRANSFORMER_CONFIGS,
    DenseLayer,
    Layout,
    activation_path,
)

LAYOUT_VERSION = "3.0.1"
"""The oldest sentence-transformers release that was seen to load what `write_layout` writes."""

_ROUTER = "Router"
_FIRST_OF_HEAD = 2  # behind Transformer and Pooling


def write_layout(folder: Path, layout: Layout, *, width: int) -> None:
    """Write a sentence-transformers folder, all but the backbone and tokenizer that lie in its root.

    These are the files of the layout before sentence-transformers 6, which its versions 3.0 to 6.2 load; two heads
    are a Router, which was seen to load in 5.1 and 6.2.

    Args:
        layout: `backbone` is not read; a pooling of None is written as mean, for so sentence-transformers
            takes a folder that does not say.
        width: H, the hidden size of the backbone.
    """
    pooling = layout.pooling or "mean"
    heads = ["Dense"] * len(layout.head) if layout.document_head is None else [_ROUTER]
    kinds = ["Transformer", "Pooling", *heads] + ["Normalize"] * layout.normalize
    paths = ["" if index == 0 else f"{index}_{kind}" for index, kind in enumerate(kinds)]
    for path in paths:
        (folder / path).mkdir(parents=True, exist_ok=True)
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": _type(kind)}
        for index, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    _write_json(folder / "modules.json", modules)
    transformer = {"max_seq_length": layout.max_length, "do_lower_case": layout.do_lower_case}
    _write_json(folder / TRANSFORMER_CONFIGS[0], transformer)
    booleans = {boolean: name == pooling for name, (boolean, _) in POOLING_NAMES.items()}
    _write_json(
        folder / paths[1] / "config.json",
        {"word_embedding_dimension": width, **booleans, "include_prompt": True},
    )
    if layout.document_head is None:
        for path, layer in zip(dense_folders(len(layout.head)), layout.head, strict=True):
            _write_dense(folder / path, layer)
    else:
        _write_router(folder / paths[2], {"query": layout.head, "document": layout.document_head})
    versions = {
        "sentence_transformers": LAYOUT_VERSION,
        "transformers": transformers.__version__,
        "pytorch": str(torch.__version__),
    }
    _write_json(
        folder / MODEL_CONFIG,
        {
            "__version__": versions,
            "prompts": dict(layout.prompts),
            "default_prompt_name": layout.default_prompt_name,
            "similarity_fn_name": layout.similarity,
        },
    )
    # safetensors keeps its files to their owner, but a model is there to be served by someone else, too.
    for weights in folder.rglob("*.safetensors"):
        weights.chmod((folder / MODEL_CONFIG).stat().st_mode)


def dense_folders(layers: int, side: str | None = None) -> list[str]:
    """Where the dense layers of a head lie in a model's folder; of the head of a side, query or document, where there
    are two.

    >>> dense_folders(2), dense_folders(1, "query")
    (['2_Dense', '3_Dense'], ['2_Router/query_0_Dense'])
    """
    if side is None:
        return [f"{_FIRST_OF_HEAD + i}_Dense" for i in range(layers)]
    return [f"{_FIRST_OF_HEAD}_{_ROUTER}/{side}_{i}_Dense" for i in range(layers)]


def _type(kind: str) -> str:
    return f"sentence_transformers.models.{kind}"


def _write_router(folder: Path, heads: Mapping[str, Sequence[DenseLayer]]) -> None:
    """A Router whose routes are dense layers, which sentence-transformers 5.1 to 6.2 load.

    A text that they are given without a task goes the way of documents, which is what their own
    Router.for_query_document writes.
    """
    structure = {
        side: [Path(path).name for path in dense_folders(len(head), side)] for side, head in heads.items()
    }
    for side, names in structure.items():
        for name, layer in zip(names, heads[side], strict=True):
            (folder / name).mkdir(exist_ok=True)
            _write_dense(folder / name, layer)
    config = {
        "types": {name: _type("Dense") for names in structure.values() for name in names},
        "structure": structure,
        "parameters": {"default_route": "document", "allow_empty_key": True},
    }
    _write_json(folder / ROUTER_CONFIG, config)


def _write_dense(folder: Path, layer: DenseLayer) -> None:
    config = {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": layer.bias is not None,
        "activation_function": activation_path(layer.activation),
    }
    _write_json(folder / "config.json", config)
    tensors = {"linear.weight": layer.weight} | ({} if layer.bias is None else {"linear.bias": layer.bias})
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors")


def _write_json(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
