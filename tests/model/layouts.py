"""Folders of both layouts of sentence-transformers, for tests."""

import json
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st
from torch import nn

from sbert_train.model.layout import (
    DenseLayer,
    Layout,
)
from sbert_train.model.write_layout import write_layout
from tests.tiny import make_backbone, make_tokenizer

TEXTS = ["the cat sat on the mat", "", "dog", "a bird ate , and the fish ran under the river . " * 9]


def dense(inputs: int, outputs: int, activation: str = "tanh", *, bias: bool = True) -> DenseLayer:
    generator = torch.Generator().manual_seed(inputs + outputs)
    return DenseLayer(
        torch.randn(outputs, inputs, generator=generator) / 4,
        torch.randn(outputs, generator=generator) if bias else None,
        activation,
    )


def save_backbone(folder: Path, architecture: str = "bert", max_length: int = 64) -> Path:
    make_backbone(architecture).save_pretrained(folder)
    make_tokenizer(max_length).save_pretrained(folder)
    return folder


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder of the old layout with all kinds of modules."""
    folder = save_backbone(tmp_path / "old")
    layout = Layout(
        folder,
        "mean",
        head=(dense(32, 16), dense(16, 8, "gelu", bias=False)),
        normalize=True,
        max_length=24,
        prompts={"query": "the ", "document": ""},
        default_prompt_name="document",
        similarity="dot",
    )
    write_layout(folder, layout, width=32)
    return folder


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """A folder that sentence-transformers itself wrote, with all kinds of modules."""
    transformer = st.Transformer(str(save_backbone(tmp_path / "backbone")))
    transformer.max_seq_length = 24
    torch.manual_seed(0)
    model = SentenceTransformer(
        modules=[
            transformer,
            st.Pooling(32, "lasttoken"),
            st.Dense(32, 16, activation_function=nn.GELU()),
            st.Dropout(0.3),
            st.Dense(16, 8, bias=False, activation_function=nn.Identity()),
            st.Normalize(),
        ],
        prompts={"query": "the "},
        similarity_fn_name="euclidean",
        device="cpu",
    )
    model.save(str(tmp_path / "new"))
    return tmp_path / "new"
