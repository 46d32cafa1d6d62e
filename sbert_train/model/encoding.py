"""Texts -> token ids -> vectors, in batches that fit: the half of an encoder that knows of text.

N texts of a corpus, n texts of a chunk or batch, D dimensions, W entries of a vector.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sbert_train.data.batch import TextBatch, pack
from sbert_train.data.literal import read_literally
from sbert_train.data.text_ids import token_ids
from sbert_train.model.corpus import Chunk, chunks, forwards
from sbert_train.model.precision import PRECISIONS, forward_in
from sbert_train.model.roles import prompt_of
from sbert_train.model.vectors_file import vectors_file
from sbert_train.model.workers import in_processes

Vectors = NDArray[np.float32]

CPU_TOKENS = 4_096
"""Tokens of a forward. On two cores all from 500 to 4,000 are about as fast, and more cores want more."""
GPU_TOKENS = 32_768
"""The same where there are thousands of cores to keep busy."""
CHUNK_CHARACTERS = 16
"""Characters of a chunk for each token of a forward: of most languages they make about four forwards."""
CHARACTERS_OF_SPECIAL_TOKENS = 8
"""What a text counts at least, so that a chunk of empty ones has an end."""
CHUNKS_PER_DEVICE = 4
"""At least, where there are several devices, so that none waits long for the last one."""


class TextEncoder(nn.Module, ABC):
    """Reads texts, and encodes any number of them by what embeds one batch."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int | None,
        prompts: Mapping[str, str],
        default_prompt_name: str | None,
    ) -> None:
        """Keep what turns a text into token ids; see `SentenceEncoder`. The tokenizer will read texts literally."""
        super().__init__()
        read_literally(tokenizer)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.prompts = dict(prompts)
        self.default_prompt_name = default_prompt_name

    @property
    @abstractmethod
    def dimension(self) -> int:
        """D."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the weights are."""

    @abstractmethod
    def require_role(self, role: str | None) -> None:
        """Check that texts can be embedded in this role; ModelError where not."""

    @abstractmethod
    def embed(self, batch: TextBatch, *, role: str | None = None, normalize: bool | None = None) -> Tensor:
        """(N, D) float32 embeddings of the distinct texts of a batch, in its order, all in one role."""

    def prompt_for(self, role: str | None) -> str:
        """The text put before a text of a role: the prompt of that name, else query for an anchor and document for
        a positive or negative, else the model's default prompt, else nothing."""
        return prompt_of(role, self.prompts, self.default_prompt_name)

    @overload
    def encode(
        self,
        texts: Sequence[str],
        *,
        role: str | None = ...,
        prompt: str | None = ...,
        batch_size: int | None = ...,
        normalize: bool | None = ...,
        show_progress: bool = ...,
        convert_to: Literal["numpy"] = "numpy",
        precision: str = ...,
        devices: Sequence[str] | None = ...,
        output: str | Path | None = ...,
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        texts: Sequence[str],
        *,
        role: str | None = ...,
        prompt: str | None = ...,
        batch_size: int | None = ...,
        normalize: bool | None = ...,
        show_progress: bool = ...,
        convert_to: Literal["torch"],
        precision: str = ...,
        devices: Sequence[str] | None = ...,
        output: None = ...,
    ) -> Tensor: ...

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        normalize: bool | None = None,
        show_progress: bool = False,
        convert_to: Literal["numpy", "torch"] = "numpy",
        precision: str = "fp32",
        devices: Sequence[str] | None = None,
        output: str | Path | None = None,
    ) -> Vectors | Tensor:
        """Embed texts, with dropout off.

        They are sorted over the whole corpus, and equal ones of a chunk are embedded once. Besides the texts and the
        embeddings, one chunk for each process and the order of the texts are in memory.

        Args:
            texts: N of them; a single string is N = 1 and gives one vector.
            role: anchor, positive, ... or a prompt name: selects the prompt, see `prompt_for`; and the head where
                there are two, so that it must be a role, query or document.
            prompt: put before each text in place of the role's prompt.
            batch_size: texts per forward at most. A forward costs by its tokens, which are CPU_TOKENS or GPU_TOKENS at
                most in any case; this is for a model that needs more memory than most. None: no such limit.
            normalize: scale to length 1; None: as the model says.
            show_progress: a bar on stderr.
            precision: of the forward: fp32, bf16, or auto for bf16 where the hardware has it. Embeddings are float32.
            devices: one process for each, such as ["cuda:0", "cuda:1"] or ["cpu"] * 4; those on CPU share the threads
                that torch has here. They take seconds to start, and a script must call this below
                `if __name__ == "__main__":`. None: in this process, on the device of the weights.
            output: a .npy file for the embeddings, which then are never in memory as a whole. It is there when this
                returns, or not at all; a file of that name is replaced.

        Returns:
            (N, D) float32, or (D,) for a single string; on the CPU. With an output: a memory map of it, read-only.

        Raises:
            ModelError: there are two heads, and the role has none of them.
            EncodingError: the output cannot be written, or a process of `devices` ended early.
            ValueError: an option has a value that it cannot take.
        """
        self.require_role(role)  # before any work, and where there are no texts
        _check(batch_size, precision, devices, convert_to, output)
        before = self.prompt_for(role) if prompt is None else prompt
        corpus = [texts] if isinstance(texts, str) else texts
        shape = len(corpus), self.dimension
        place = (
            nullcontext(np.empty(shape, np.float32)) if output is None else vectors_file(Path(output), shape)
        )
        with place as embeddings:
            if devices is None:
                self._fill(
                    embeddings,
                    corpus,
                    lambda batch: self.embed(batch, role=role, normalize=normalize),
                    prompt=before,
                    batch_size=batch_size,
                    precision=precision,
                    show_progress=show_progress,
                )
            else:
                options = {
                    "role": role,
                    "prompt": before,
                    "batch_size": batch_size,
                    "normalize": normalize,
                    "precision": precision,
                }
                parts = in_processes(self, devices, _chunks(corpus, devices, before), options)
                _put(parts, embeddings, show_progress)
        found = embeddings if output is None else np.load(output, mmap_mode="r")
        vectors: Vectors = found[0] if isinstance(texts, str) else found
        return torch.from_numpy(vectors) if convert_to == "torch" else vectors

    def in_batches(
        self,
        texts: Sequence[str],
        width: int,
        function: Callable[[TextBatch], Tensor],
        *,
        prompt: str = "",
        show_progress: bool = False,
    ) -> Vectors:
        """(N, W) float32: what a function gives for batches of the texts, with dropout off."""
        found = np.empty((len(texts), width), np.float32)
        self._fill(found, texts, function, prompt=prompt, show_progress=show_progress)
        return found

    def _fill(
        self,
        rows: Vectors,
        texts: Sequence[str],
        function: Callable[[TextBatch], Tensor],
        *,
        prompt: str,
        batch_size: int | None = None,
        precision: str = "fp32",
        show_progress: bool = False,
    ) -> None:
        """Put what a function gives for batches of the texts into (N, W) rows."""
        tokens = _forward_tokens(self.device.type)

        def vectors_of(chunk: Chunk) -> Vectors:
            ids = self.tokenize([prompt + text for text in chunk.texts])
            lengths = np.array([len(one) for one in ids], np.int64)
            found = torch.empty(len(ids), rows.shape[1], dtype=torch.float32, device=self.device)
            for chosen in forwards(lengths, tokens, batch_size):
                batch, places = pack([ids[i] for i in chosen])
                vectors = function(batch.to(self.device))
                found[torch.from_numpy(chosen)] = vectors[torch.from_numpy(places)]
            return found.cpu().numpy()  # once a chunk: a GPU works on while the next batch is laid out

        parts = ((chunk, vectors_of(chunk)) for chunk in _chunks(texts, [self.device.type], prompt))
        with torch.no_grad(), _in_eval_mode(self), forward_in(precision, self.device):
            _put(parts, rows, show_progress)

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token ids of each text, with special tokens, cut at max_length; a text of none has that of padding."""
        ids = token_ids(texts, self.tokenizer, self.max_length)
        return [np.array(one, dtype=np.int32) for one in ids]


def _check(
    batch_size: int | None,
    precision: str,
    devices: Sequence[str] | None,
    convert_to: str,
    output: str | Path | None,
) -> None:
    """ValueError where an option of `encode` has a value that it cannot take."""
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size: expected at least 1, or None for no limit, found {batch_size}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, found {precision!r}")
    if isinstance(devices, str) or (devices is not None and not devices):
        raise ValueError(
            f'devices: expected a list of one or more, such as ["cpu", "cpu"], found {devices!r}'
        )
    if convert_to not in ("numpy", "torch"):
        raise ValueError(f"convert_to: expected numpy or torch, found {convert_to!r}")
    if output is not None and convert_to == "torch":
        raise ValueError("convert_to: expected numpy, which an output is given as, found torch")


def _forward_tokens(device: str) -> int:
    return CPU_TOKENS if device.startswith("cpu") else GPU_TOKENS


def _chunks(texts: Sequence[str], devices: Sequence[str], prompt: str) -> Iterator[Chunk]:
    """Chunks of a size for these devices; of a small corpus smaller ones, so that each device has its share."""
    overhead = len(prompt) + CHARACTERS_OF_SPECIAL_TOKENS
    characters = CHUNK_CHARACTERS * max(map(_forward_tokens, devices))
    if len(devices) > 1:
        whole = sum(len(text) + overhead for text in texts)
        characters = min(characters, whole // (CHUNKS_PER_DEVICE * len(devices)))
    return chunks(texts, characters, overhead=overhead)


def _put(parts: Generator[tuple[Chunk, Vectors]], rows: Vectors, show_progress: bool) -> None:
    """Put the vectors of the distinct texts of chunks where these texts stand."""
    with (
        closing(parts),
        tqdm(total=len(rows), desc="Encoding", unit="text", disable=not show_progress) as bar,
    ):
        for chunk, vectors in parts:
            rows[chunk.rows] = vectors[chunk.number]
            bar.update(len(chunk.rows))
            del chunk, vectors  # or they would be there until the next are


@contextmanager
def _in_eval_mode(module: nn.Module) -> Iterator[None]:
    """Dropout is off within the block; each part is in its own mode again afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
