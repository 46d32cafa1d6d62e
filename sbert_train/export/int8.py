"""Export as an ONNX graph with 8-bit weights, as small as a stated bar of quality allows.

Weights are rounded per channel and activations per batch as it comes (onnxruntime's dynamic quantisation). How much
of the graph bears that depends on the model, so the steps of STEPS are tried in turn until one meets the bar.

R runs (prompts and batch sizes), N texts, D dimensions.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from sbert_train.errors import ExportError
from sbert_train.export.fresh import embed_in_fresh_process
from sbert_train.export.onnx import BATCH_SIZES, onnxruntime_version, require_onnx, write_graph
from sbert_train.export.reference import Reference
from sbert_train.export.report import Check
from sbert_train.model.encoder import SentenceEncoder

MAIN_FILE = "onnx/model_quantized.onnx"

LOWEST_MEAN_COSINE = 0.98
LOWEST_RANK_CORRELATION = 0.98


@dataclass(frozen=True)
class Quality:
    """How near quantised embeddings are to those of the model.

    Attributes:
        mean_cosine: of a text's embedding with that of the model, over all texts and runs.
        lowest_cosine: the same of the worst text.
        rank_correlation: Spearman's, between the two models' cosines of all pairs of texts; of the worst run.
    """

    mean_cosine: float
    lowest_cosine: float
    rank_correlation: float

    @property
    def enough(self) -> bool:
        """Whether it meets the bar; not if a figure is not a number."""
        return self.mean_cosine >= LOWEST_MEAN_COSINE and self.rank_correlation >= LOWEST_RANK_CORRELATION

    def __str__(self) -> str:
        return (
            f"mean cosine {self.mean_cosine:.4f} (at least {LOWEST_MEAN_COSINE}), "
            f"rank correlation {self.rank_correlation:.4f} (at least {LOWEST_RANK_CORRELATION})"
        )


def export_int8(encoder: SentenceEncoder, stage: Path, reference: Reference) -> tuple[str, tuple[Check, ...]]:
    """Write an encoder as a folder with onnx/model_quantized.onnx that meets the bar in a fresh process.

    Returns:
        The main file, and the comparison.

    Raises:
        ExportError: a package is missing, the model does not fit into one file, or no step meets the bar.
    """
    require_onnx()
    encoder.save(stage)
    exact, file = stage / "onnx" / "exact.onnx", stage / MAIN_FILE
    write_graph(encoder, exact)
    for step, options in STEPS.items():
        _quantise(exact, file, options)
        embeddings = embed_in_fresh_process(
            "onnxruntime", file, reference.texts, prompts=reference.prompts, batch_sizes=BATCH_SIZES
        )
        quality = measure_quality(embeddings, reference)
        if quality.enough:
            exact.unlink()
            figures = {
                "mean cosine": quality.mean_cosine,
                "lowest cosine": quality.lowest_cosine,
                "rank correlation": quality.rank_correlation,
            }
            return MAIN_FILE, (Check(onnxruntime_version(), figures, f"8-bit: {step}"),)
    raise ExportError(f"no 8-bit form of this model is near enough: the nearest has {quality}; use --to onnx")


def measure_quality(embeddings: NDArray[np.float32], reference: Reference) -> Quality:
    """Compare quantised embeddings (R, N, D), prompt by prompt, with those of the model."""
    runs = len(embeddings) // len(reference.embeddings)
    expected = _unit(np.repeat(reference.embeddings, runs, axis=0))
    found = _unit(embeddings)
    cosines = (found * expected).sum(axis=-1)
    pairs = np.triu_indices(embeddings.shape[1], k=1)
    correlations = [
        spearmanr((a @ a.T)[pairs], (b @ b.T)[pairs]).statistic for a, b in zip(found, expected, strict=True)
    ]
    return Quality(float(cosines.mean()), float(cosines.min()), float(np.min(correlations)))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float64)


def _all_of_it(model: Any) -> dict[str, Any]:
    return {"op_types_to_quantize": ["MatMul", "Gather"]}


def _without_narrowing_layers(model: Any) -> dict[str, Any]:
    # The second half of each feed-forward block reads activations with rare large values, which 8 bits round worst.
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    narrowing = [
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul"
        and len(shape := shapes.get(node.input[1], ())) == 2
        and shape[0] > shape[1]
    ]
    return {"op_types_to_quantize": ["MatMul", "Gather"], "nodes_to_exclude": narrowing}


def _embeddings_only(model: Any) -> dict[str, Any]:
    return {"op_types_to_quantize": ["Gather"]}


STEPS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "all layers and token embeddings": _all_of_it,
    "token embeddings and all layers but those that narrow the feed-forward blocks": _without_narrowing_layers,
    "token embeddings only": _embeddings_only,
}
"""What becomes 8-bit, smallest file first -> its options for onnxruntime, given the graph."""


def _quantise(exact: Path, file: Path, options: Callable[[Any], dict[str, Any]]) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(exact)
    # The exporter's notes on shapes in between contradict the quantised graph, and onnxruntime then refuses it.
    del model.graph.value_info[:]
    logging.disable(
        logging.WARNING
    )  # the root logger is told to ask the user for a pre-processing that is not needed
    try:
        quantize_dynamic(
            model,
            file,
            per_channel=True,
            weight_type=QuantType.QUInt8,  # with signed ones some CPUs overflow in 16 bits
            **options(model),
        )
    finally:
        logging.disable(logging.NOTSET)
