"""Texts -> token ids -> vectors, in batches that fit: the half of an encoder that knows of text.

N texts, D dimensions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sbert_train.data.batch import TextBatch, pack
from sbert_train.model.roles import prompt_of


class TextEncoder(nn.Module, ABC):
    """Reads texts, and encodes any number of them by what embeds one batch."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int | None,
        prompts: Mapping[str, str],
        default_prompt_name: str | None,
    ) -> None:
        """Keep what turns a text into token ids; see `SentenceEncoder`."""
        super().__init__()
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
        batch_size: int = ...,
        normalize: bool | None = ...,
        show_progress: bool = ...,
        convert_to: Literal["numpy"] = "numpy",
    ) -> NDArray[np.float32]: ...

    @overload
    def encode(
        self,
        texts: Sequence[str],
        *,
        role: str | None = ...,
        prompt: str | None = ...,
        batch_size: int = ...,
        normalize: bool | None = ...,
        show_progress: bool = ...,
        convert_to: Literal["torch"],
    ) -> Tensor: ...

    @torch.no_grad()
    def encode(
        self,
        texts: Sequence[str],
        *,
        role: str | None = None,
        prompt: str | None = None,
        batch_size: int = 64,
        normalize: bool | None = None,
        show_progress: bool = False,
        convert_to: Literal["numpy", "torch"] = "numpy",
    ) -> NDArray[np.float32] | Tensor:
        """Embed texts, in float32 with dropout off.

        Args:
            texts: N of them; a single string is N = 1 and gives one vector.
            role: anchor, positive, ... or a prompt name: selects the prompt, see `prompt_for`; and the head where
                there are two, so that it must be a role, query or document.
            prompt: put before each text in place of the role's prompt.
            batch_size: texts per forward; they are sorted by length over the whole of `texts` first.
            normalize: scale to length 1; None: as the model says.
            show_progress: a bar on stderr.

        Returns:
            (N, D) float32, or (D,) for a single string; on the CPU.

        Raises:
            ModelError: there are two heads, and the role has none of them.
        """
        if isinstance(texts, str):
            return self.encode(
                [texts],
                role=role,
                prompt=prompt,
                normalize=normalize,
                convert_to=convert_to,
            )[0]
        self.require_role(role)  # before any work, and where there are no texts
        before = self.prompt_for(role) if prompt is None else prompt
        embeddings = self.in_batches(
            [before + text for text in texts],
            self.dimension,
            lambda batch: self.embed(batch, role=role, normalize=normalize),
            batch_size=batch_size,
            show_progress=show_progress,
        )
        return embeddings if convert_to == "torch" else embeddings.numpy()

    @torch.no_grad()
    def in_batches(
        self,
        texts: Sequence[str],
        width: int,
        function: Callable[[TextBatch], Tensor],
        *,
        batch_size: int = 64,
        show_progress: bool = False,
    ) -> Tensor:
        """(N, width) float32 on the CPU: what a function gives for batches of the texts, with dropout off."""
        ids = self.tokenize(texts)
        longest_first = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        result = torch.empty(len(ids), width)
        training = self.training
        self.eval()
        try:
            with tqdm(total=len(ids), desc="Encoding", unit="text", disable=not show_progress) as bar:
                for start in range(0, len(ids), batch_size):
                    chosen = longest_first[start : start + batch_size]
                    batch, places = pack([ids[i] for i in chosen])
                    vectors = function(batch.to(self.device))
                    result[chosen] = vectors[torch.from_numpy(places).to(vectors.device)].cpu()
                    bar.update(len(chosen))
        finally:
            self.train(training)
        return result

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token ids of each text, with special tokens, cut at max_length."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            truncation=self.max_length is not None,
            max_length=self.max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [np.array(ids, dtype=np.int32) for ids in encoded["input_ids"]]
