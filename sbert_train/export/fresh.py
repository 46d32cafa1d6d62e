"""The other side of an export: a fresh process that loads what was written as a stranger would, and embeds texts.

    parent: embed_in_fresh_process  --request.json-->  child: main  --embeddings.npy-->  parent

P prompts, S batch sizes, N texts, D dimensions.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sbert_train
from sbert_train.errors import ExportError

Embed = Callable[[list[str], str | None, int], NDArray[np.float32]]
"""(N texts, name of a prompt, batch size) -> (N, D)."""


class CannotImport(Exception):
    """The library that should read the export is not here, or does not work with what else is installed."""


def embed_in_fresh_process(
    reader: str,
    model: Path,
    texts: Sequence[str],
    *,
    prompts: Sequence[str | None] = (None,),
    batch_sizes: Sequence[int] = (64,),
) -> NDArray[np.float32]:
    """Load a model in a new Python process, without network, and embed texts there.

    Args:
        reader: a name of READERS.
        model: a sentence-transformers folder; for onnxruntime a file two levels below one.
        texts: N of them.
        prompts: names of the model's prompts, or of its two heads, query and document; None for its default.
        batch_sizes: all texts are embedded once with each prompt and each size.

    Returns:
        (P * S, N, D) float32, prompt by prompt.

    Raises:
        CannotImport: the reader's library cannot be imported there.
        ExportError: the model cannot be loaded or run there.
    """
    request = {
        "reader": reader,
        "model": str(model.absolute()),
        "texts": list(texts),
        "prompts": list(prompts),
        "batch_sizes": list(batch_sizes),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        # -P: a random.py in the working directory must not stand in for Python's own.
        command = [sys.executable, "-P", "-m", __name__, str(folder)]
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True)
        if done.returncode == 0:
            return np.asarray(np.load(folder / "embeddings.npy"), dtype=np.float32)
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    if done.returncode == _CANNOT_IMPORT:
        raise CannotImport(reason)
    raise ExportError(f"the export cannot be used: {reader} in a fresh process fails with {reason}")


def main(folder: Path) -> None:
    """What the fresh process does: read request.json of a folder, write embeddings.npy beside it."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        embed = READERS[request["reader"]](Path(request["model"]))
    except ImportError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(_CANNOT_IMPORT)
    runs = [
        embed(request["texts"], prompt, size)
        for prompt in request["prompts"]
        for size in request["batch_sizes"]
    ]
    np.save(folder / "embeddings.npy", np.stack(runs))


_CANNOT_IMPORT = 3


def _environment() -> dict[str, str]:
    paths = [str(Path(sbert_train.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(paths)}


def _read_by_us(folder: Path) -> Embed:
    from sbert_train.model.encoder import SentenceEncoder

    encoder = SentenceEncoder.load(folder, device="cpu")
    return lambda texts, prompt, size: encoder.encode(texts, role=prompt, batch_size=size)


def _read_by_sentence_transformers(folder: Path) -> Embed:
    # By its name as a string: it is no dependency, and only ever looked at where a user happens to have it.
    library: Any = importlib.import_module("sentence_transformers")
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)

    def embed(texts: list[str], prompt: str | None, size: int) -> NDArray[np.float32]:
        # encode_query and encode_document, which came with two heads, pick the prompt of that name and the head.
        encode = getattr(model, f"encode_{prompt}", None) or partial(model.encode, prompt_name=prompt)
        return np.asarray(encode(texts, batch_size=size, show_progress_bar=False), dtype=np.float32)

    return embed


def _read_by_onnxruntime(file: Path) -> Embed:
    import onnxruntime
    from transformers import AutoTokenizer

    from sbert_train.model.read_layout import read_layout

    folder = file.parents[1]
    layout = read_layout(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    inputs = [one.name for one in session.get_inputs()]

    def embed(texts: list[str], prompt: str | None, size: int) -> NDArray[np.float32]:
        before = layout.prompts.get(prompt or layout.default_prompt_name or "", "")
        pieces = []
        for start in range(0, len(texts), size):
            tokens = tokenizer(
                [before + text for text in texts[start : start + size]],
                padding=True,
                truncation=layout.max_length is not None,
                max_length=layout.max_length,
                return_tensors="np",
            )
            feed = {name: tokens[name].astype(np.int64) for name in inputs}
            pieces.append(session.run(["sentence_embedding"], feed)[0])
        return np.concatenate(pieces)

    return embed


READERS: Mapping[str, Callable[[Path], Embed]] = {
    "sbert-train": _read_by_us,
    "sentence-transformers": _read_by_sentence_transformers,
    "onnxruntime": _read_by_onnxruntime,
}
"""Who may read an export -> the function that loads it."""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
