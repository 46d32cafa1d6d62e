"""The models that are trained: folders that both sides read, and the work of a token in them.

Shapes: H width, F width of the feed-forward layer, L layers.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from benchmarks.speed.rows import BASE
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.resolve import resolve_model

MAX_LENGTH = 256
"""Tokens of a text in either model; no text of the data is longer but a few of TREC QA, cut alike on both sides."""

DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")
_SEED = 3


def minilm(_: Path) -> Path:
    """all-MiniLM-L6-v2 as its package has it."""
    return resolve_model(BASE)


def bert_base(cache: Path) -> Path:
    """Random weights in the shape of BERT-base, with the tokenizer of all-MiniLM-L6-v2; written once."""
    folder = cache / "bert-base"
    if not (folder / "modules.json").is_file():
        torch.manual_seed(_SEED)
        config = BertConfig()  # its defaults are BERT-base
        tokenizer = AutoTokenizer.from_pretrained(resolve_model(BASE))
        encoder = SentenceEncoder(BertModel(config), tokenizer, pooling="mean", max_length=MAX_LENGTH)
        encoder.save(folder)
    return folder


MODELS: Mapping[str, Callable[[Path], Path]] = {"minilm": minilm, "bert-base": bert_base}
"""Name of the model of a cell -> folder for what must be written -> its own folder."""

ABOUT: Mapping[str, str] = {
    "minilm": "all-MiniLM-L6-v2 (6 layers, width 384)",
    "bert-base": "random weights in the shape of BERT-base (12 layers, width 768, 30,522 tokens)",
}


def model_folder(name: str, dropout: bool, cache: Path) -> Path:
    """The folder of a model, a copy without dropout where none is wanted.

    Args:
        name: a key of MODELS, or a folder.
        cache: where folders that do not exist yet are written.
    """
    folder = MODELS[name](cache) if name in MODELS else Path(name)
    return folder if dropout else without_dropout(folder, cache / f"{folder.name}-without-dropout")


def without_dropout(folder: Path, copy: Path) -> Path:
    """The same model, whose configuration has no dropout."""
    if not copy.exists():
        shutil.copytree(folder, copy)
        file = copy / "config.json"
        config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if set(DROPOUT) - config.keys():
            raise ValueError(f"{file}: expected {' and '.join(DROPOUT)}, found neither; is it a BERT?")
        file.chmod(0o644)
        file.write_text(json.dumps(config | dict.fromkeys(DROPOUT, 0.0)), encoding="utf-8")
    return copy


def matmul_parameters(folder: Path) -> int:
    """Weights of the layers' matrices, L (4 H² + 2 H F): what each token is multiplied with.

    Embeddings are looked up, and the pooler is not used; attention's own products, which grow with the length of a
    text, have no weights.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    width, inner = config["hidden_size"], config["intermediate_size"]
    return int(config["num_hidden_layers"] * (4 * width**2 + 2 * width * inner))


def count_tokens(folder: Path, texts: list[str]) -> list[int]:
    """Tokens of each text, special ones included, cut as in training."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(texts, truncation=True, max_length=MAX_LENGTH, return_attention_mask=False)
    return [len(ids) for ids in encoded["input_ids"]]
