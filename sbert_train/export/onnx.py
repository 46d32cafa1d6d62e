"""Export as one ONNX graph from token ids to embeddings, beside a whole sentence-transformers folder.

The names of files, inputs and outputs are those that sentence-transformers' ONNX backend, text-embeddings-inference
and transformers.js look for.

N texts, L longest text, H hidden size, D dimensions.
"""

import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from inspect import signature
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sbert_train.errors import ExportError
from sbert_train.export.fresh import embed_in_fresh_process
from sbert_train.export.reference import Reference, require_equal
from sbert_train.export.report import Check
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.layout import Layout
from sbert_train.model.pooling import pool_padded

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
MAIN_FILE = "onnx/model.onnx"
OPSET = 18
OUTPUTS = ["last_hidden_state", "sentence_embedding"]
LARGEST_FILE = 2**31 - 1  # bytes of one protobuf message, and so of an ONNX file with its weights
BATCH_SIZES = (1, 3, 64)


class Graph(nn.Module):
    """Backbone, pooling, head and normalisation as one function of tensors."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        super().__init__()
        self.backbone = encoder.backbone
        self.head = encoder.head_for(None)
        self.pooling = encoder.pooling
        self.normalize = encoder.normalize

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(N, L) int64 each -> the (N, L, H) token vectors and the (N, D) embeddings, float32."""
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        tokens = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        vectors = pool_padded(tokens, attention_mask, self.pooling)
        if self.head is not None:
            vectors = self.head(vectors)
        return tokens, F.normalize(vectors, dim=-1) if self.normalize else vectors


def export_onnx(encoder: SentenceEncoder, stage: Path, reference: Reference) -> tuple[str, tuple[Check, ...]]:
    """Write an encoder as a folder with onnx/model.onnx, and compare what onnxruntime computes in a fresh process.

    Args:
        encoder: on the CPU, with attention for padded input.

    Returns:
        The main file, and the comparison.

    Raises:
        ExportError: a package is missing, the model does not fit into one file, or its embeddings are others.
    """
    require_onnx()
    encoder.save(stage)
    write_graph(encoder, stage / MAIN_FILE)
    embeddings = embed_in_fresh_process(
        "onnxruntime",
        stage / MAIN_FILE,
        reference.texts,
        prompts=reference.prompts,
        batch_sizes=BATCH_SIZES,
    )
    difference = require_equal(embeddings, reference, "onnxruntime")
    remark = f"batches of {', '.join(map(str, BATCH_SIZES))}"
    return MAIN_FILE, (Check(onnxruntime_version(), {"largest difference": difference}, remark),)


def require_onnx() -> None:
    """Check that the packages of the extra are here.

    Raises:
        ExportError: one is not.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(f'ONNX export needs {", ".join(missing)}: pip install "sbert-train[onnx]"')


def require_one_head(model: str, layout: Layout) -> None:
    """Check that one graph can hold a model.

    Raises:
        ExportError: it has a head for queries and another for documents.
    """
    if layout.document_head is not None:
        raise ExportError(
            f"{model} has two heads, one for queries and one for documents, and an ONNX graph has one output for every "
            "text: use --to sentence-transformers, or train with model.head.shared: true"
        )


def onnxruntime_version() -> str:
    """The name and version of the reader."""
    return f"onnxruntime {version('onnxruntime')}"


def write_graph(encoder: SentenceEncoder, file: Path) -> None:
    """Trace an encoder and write its graph, for batches of any size and texts of any length.

    Raises:
        ExportError: the model does not fit into one file, or cannot be traced.
    """
    size = sum(weight.numel() * weight.element_size() for weight in encoder.parameters())
    if size > LARGEST_FILE:
        raise ExportError(
            f"an ONNX file holds at most 2 GB, and this model has {size / 1e9:.1f} GB of weights"
        )
    names = input_names(encoder)
    # Sizes 0 and 1 would be taken for constants.
    example = tuple(torch.ones(2, 3, dtype=torch.long) for _ in names)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    file.parent.mkdir(exist_ok=True)
    training = encoder.training
    try:
        with _quiet():
            torch.onnx.export(
                Graph(encoder.eval()),
                example,
                str(file),
                dynamo=True,
                opset_version=OPSET,
                input_names=names,
                output_names=OUTPUTS,
                dynamic_shapes={name: axes for name in names},
                external_data=False,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        name = type(encoder.backbone).__name__
        reason = str(error).strip().splitlines()[0]
        raise ExportError(
            f"torch cannot write {name} as ONNX: {reason}; use --to sentence-transformers"
        ) from error
    finally:
        encoder.train(training)


def input_names(encoder: SentenceEncoder) -> list[str]:
    """The inputs of the graph: what the tokenizer gives and the backbone takes."""
    taken = signature(encoder.backbone.forward).parameters
    types = "token_type_ids"
    both = types in encoder.tokenizer.model_input_names and types in taken
    return ["input_ids", "attention_mask", *([types] if both else [])]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes on packages and shared axis names, which no user can act on."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
