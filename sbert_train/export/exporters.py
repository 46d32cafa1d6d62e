"""The story of an export: load, write into a stage, compare in fresh processes, move to its place."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sbert_train import __version__
from sbert_train.errors import ExportError
from sbert_train.export.folder import export_folder
from sbert_train.export.int8 import export_int8
from sbert_train.export.onnx import export_onnx, require_one_head
from sbert_train.export.reference import Reference, take_reference
from sbert_train.export.report import Check, ExportReport
from sbert_train.export.stage import staged, write_manifest
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.read_layout import read_layout
from sbert_train.model.resolve import resolve_model
from sbert_train.objectives.softmax import CLASSIFIER, load_classifier, save_classifier

Exporter = Callable[[SentenceEncoder, Path, Reference], tuple[str, tuple[Check, ...]]]

EXPORTERS: Mapping[str, Exporter] = {
    "sentence-transformers": export_folder,
    "onnx": export_onnx,
    "onnx-int8": export_int8,
}
"""What --to names -> the function that writes an encoder into a folder and compares what is read from there."""

CARRIED = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE")
"""Files that go with a model wherever it goes."""


def export_model(model: str, output: Path, *, to: str = "sentence-transformers") -> ExportReport:
    """Write a model elsewhere, in a format of EXPORTERS, and compare it with the original before saying done.

    Args:
        model: folder, Hub id, or package://module/folder.
        output: a folder that is new, empty, or an export that nobody has added to; it is there whole or not at all. A
            classifier beside the model goes with it.

    Raises:
        ExportError: the format is unknown, its packages are missing, it cannot hold two heads, `output` is in use, or
            the export is not equal.
        ModelError: the model cannot be found or understood.
    """
    started = time.monotonic()
    if to not in EXPORTERS:
        raise ExportError(f"--to: expected one of {', '.join(EXPORTERS)}; found {to}")
    source = resolve_model(model)
    if to.startswith("onnx"):
        require_one_head(model, read_layout(source))
    with staged(output) as stage:
        # Padded attention is what every runtime has; on the CPU, for that is what the fresh process computes on.
        encoder = SentenceEncoder.load(source, packing="sorted", device="cpu")
        main_file, checks = EXPORTERS[to](encoder, stage, take_reference(encoder))
        for name in CARRIED:
            if (source / name).is_file():
                shutil.copyfile(source / name, stage / name)
        if (source / CLASSIFIER).is_dir():
            save_classifier(load_classifier(source / CLASSIFIER), stage / CLASSIFIER)
        size = (stage / main_file).stat().st_size
        figures = {check.reader: dict(check.figures) for check in checks}
        write_manifest(stage, {"sbert_train": __version__, "model": model, "to": to, "checks": figures})
    return ExportReport(output, main_file, size / 1e6, checks, time.monotonic() - started)
