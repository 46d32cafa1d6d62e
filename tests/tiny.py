"""Tiny random models and tokenizers, built in memory; nothing is downloaded."""

from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import Head, HeadSpec, make_head

_TEXT = """
a the cat dog bird fish sat slept ran ate saw on under near mat tree house river red blue big small not never
two three man woman child chased fed bought sold book apple train city rain sun and but . ,
"""
WORDS = _TEXT.split()
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
VOCABULARY = {word: i for i, word in enumerate([*SPECIAL.values(), *WORDS])}

_SHAPE: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 66,
    "pad_token_id": 0,
}

ARCHITECTURES: dict[str, Callable[[], PreTrainedModel]] = {
    "bert": lambda: BertModel(BertConfig(**_SHAPE)),
    "roberta": lambda: RobertaModel(RobertaConfig(**_SHAPE)),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(
            vocab_size=len(VOCABULARY),
            dim=32,
            n_layers=2,
            n_heads=4,
            hidden_dim=48,
            max_position_embeddings=66,
        )
    ),
    "mpnet": lambda: MPNetModel(MPNetConfig(**_SHAPE)),
    "electra": lambda: ElectraModel(ElectraConfig(embedding_size=16, **_SHAPE)),
    "albert": lambda: AlbertModel(AlbertConfig(embedding_size=16, **_SHAPE)),
    "xlm-roberta": lambda: XLMRobertaModel(XLMRobertaConfig(**_SHAPE)),
    "modernbert": lambda: ModernBertModel(
        ModernBertConfig(
            **_SHAPE,
            local_attention=8,
            attention_dropout=0.1,
            bos_token_id=2,
            eos_token_id=3,
            cls_token_id=2,
            sep_token_id=3,
        )
    ),
}


def make_tokenizer(max_length: int = 64) -> PreTrainedTokenizerFast:
    """One token for each word of WORDS, [CLS] before and [SEP] behind each text."""
    backend = Tokenizer(WordLevel(VOCABULARY, unk_token=SPECIAL["unk_token"]))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(token, VOCABULARY[token]) for token in (SPECIAL["cls_token"], SPECIAL["sep_token"])]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=max_length, **SPECIAL)


def make_backbone(architecture: str = "bert", *, seed: int = 0) -> PreTrainedModel:
    """A random backbone of about 50,000 weights, whose layers are far from the identity, with dropout as configured."""
    torch.manual_seed(seed)
    backbone = ARCHITECTURES[architecture]()
    with torch.no_grad():
        for name, weight in backbone.named_parameters():
            # At the usual scale of 0.02 attention hardly tells tokens apart, and a wrong mask would not show.
            if weight.ndim == 2 and "embedding" not in name:
                weight.normal_(std=0.2)
    return backbone


def make_encoder(architecture: str = "bert", *, seed: int = 0, **options: object) -> SentenceEncoder:
    """A tiny encoder; options as for SentenceEncoder."""
    settings: dict[str, Any] = {"max_length": 64, **options}
    return SentenceEncoder(make_backbone(architecture, seed=seed), make_tokenizer(), **settings)


def trained_head(spec: HeadSpec, inputs: int) -> Head:
    """A head as training may leave it: of two, each has its own weights and biases."""
    head = make_head(spec, inputs)
    for weights in head.parameters():
        torch.nn.init.normal_(weights, std=0.2)
    return head
