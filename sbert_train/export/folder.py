"""Export as a sentence-transformers folder, read again by us and, where it is installed, by sentence-transformers."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

from sbert_train import __version__
from sbert_train.export.fresh import CannotImport, embed_in_fresh_process
from sbert_train.export.reference import Reference, require_equal
from sbert_train.export.report import Check
from sbert_train.model.encoder import SentenceEncoder

MAIN_FILE = "model.safetensors"


def export_folder(
    encoder: SentenceEncoder, stage: Path, reference: Reference
) -> tuple[str, tuple[Check, ...]]:
    """Write an encoder and compare what fresh processes read.

    Returns:
        The main file, and the comparisons.

    Raises:
        ExportError: it cannot be read there, or gives other embeddings.
    """
    encoder.save(stage)
    return MAIN_FILE, (
        _compare(stage, reference, "sbert-train", __version__),
        _compare_sentence_transformers(stage, reference),
    )


def _compare_sentence_transformers(stage: Path, reference: Reference) -> Check:
    name = "sentence-transformers"
    if importlib.util.find_spec("sentence_transformers") is None:
        return Check(name, {}, "not installed, so not tried")
    try:
        return _compare(stage, reference, name, version(name))
    except CannotImport as error:
        return Check(f"{name} {version(name)}", {}, f"installed, but cannot be imported: {error}")


def _compare(stage: Path, reference: Reference, reader: str, reader_version: str) -> Check:
    embeddings = embed_in_fresh_process(reader, stage, reference.texts, prompts=reference.prompts)
    difference = require_equal(embeddings, reference, reader)
    return Check(f"{reader} {reader_version}", {"largest difference": difference})
