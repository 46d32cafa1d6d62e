"""The sentence encoder: one backbone, a pooling, a head and a normalisation, shared by all texts of a batch.

N distinct texts of a batch, B rows, K negatives of a row, T tokens of all texts, H dimensions of the backbone,
D dimensions of an embedding.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from sbert_train.data.batch import TextBatch
from sbert_train.errors import ModelError
from sbert_train.model.attention import NotPackable
from sbert_train.model.backbone import check_max_length, load_backbone, save_backbone
from sbert_train.model.compiling import compile_layers
from sbert_train.model.dropout import use_fast_dropout
from sbert_train.model.encoding import TextEncoder
from sbert_train.model.freezing import freeze, freeze_pooler
from sbert_train.model.gradient_cache import pooled_in_pieces
from sbert_train.model.head import (
    Head,
    HeadSpec,
    TwoHeads,
    head_of_layout,
    layers_of_head,
    make_head,
    outputs_of,
)
from sbert_train.model.layout import Layout
from sbert_train.model.lora import Adapters, LoraSpec, add_adapters, merge_adapters, merged_state
from sbert_train.model.packing import choose_way, pooled, probe_batch, set_attention
from sbert_train.model.read_layout import read_layout
from sbert_train.model.resolve import resolve_model
from sbert_train.model.roles import SIDES, named_prompts
from sbert_train.model.write_layout import write_layout


class SentenceEncoder(TextEncoder):
    """Texts -> embeddings; the siamese encoder of Reimers & Gurevych 2019 ("Sentence-BERT", section 3).

    >>> encoder = SentenceEncoder.load("sentence-transformers/all-MiniLM-L6-v2")  # doctest: +SKIP
    >>> encoder.encode(["A cat sleeps.", "A dog barks."]).shape  # doctest: +SKIP
    (2, 384)
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        pooling: str = "mean",
        head: Head | None = None,
        normalize: bool = False,
        max_length: int | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity: str | None = None,
        packing: str = "auto",
        gradient_cache: int | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            pooling: a name of `sbert_train.model.pooling.POOLINGS`.
            max_length: tokens of a text, special ones included; what is longer is cut. None: no limit.
            prompts: prompt name -> text put before each text; see `prompt_for`.
            similarity: what these embeddings are meant to be compared with, written into the saved folder.
            packing: auto, packed, sorted or padded: how batches go through the backbone. The result is the same.
            gradient_cache: tokens of a micro-batch, see `sbert_train.model.gradient_cache`; None: whole batches.

        Raises:
            ModelError: packing="packed" and the architecture cannot run packed.
        """
        super().__init__(tokenizer, max_length, prompts or {}, default_prompt_name)
        self.backbone = backbone
        self.pooling = pooling
        self.head = head
        self.normalize = normalize
        self.similarity = similarity
        self.gradient_cache = gradient_cache
        self.adapters: Adapters | None = None
        self.compiled = ""
        self._padded_attention: str = backbone.config._attn_implementation or "eager"
        freeze_pooler(backbone)
        use_fast_dropout(backbone)
        self.way, self.why = "", ""
        probe = probe_batch(backbone, set(tokenizer.all_special_ids), max_length)
        self.choose_way(probe, packing, gradients=False)

    @classmethod
    def load(
        cls,
        base: str | Path,
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_length: int | None = None,
        head: HeadSpec | None = None,
        prompts: Mapping[str, str] | None = None,
        similarity: str | None = None,
        packing: str = "auto",
        gradient_cache: int | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        device: str | torch.device | None = None,
    ) -> "SentenceEncoder":
        """Load a sentence-transformers or plain transformers model.

        What is not given is as the folder says; a plain transformers folder has mean pooling and no normalisation.

        Args:
            base: Hub id, folder, or package://module/folder.
            head: a new head, randomly initialised, in place of the folder's own.
            prompts: role or prompt name -> text, added to those of the folder.
            similarity: what the embeddings are to be compared with, see `layout.SIMILARITIES`.
            device: where to put it; None: a GPU where there is one, else the CPU.

        Raises:
            ModelError: it cannot be found, verified or understood; or two roles of one prompt name differ in it.
        """
        folder = resolve_model(str(base), revision=revision, trust_remote_code=trust_remote_code)
        layout = read_layout(folder)
        backbone, tokenizer = load_backbone(layout, trust_remote_code)
        check_max_length(base, backbone, tokenizer, max_length)
        encoder = cls(
            backbone,
            tokenizer,
            pooling=pooling or layout.pooling or "mean",
            head=head_of_layout(layout) if head is None else make_head(head, backbone.config.hidden_size),
            normalize=layout.normalize if normalize is None else normalize,
            max_length=max_length or layout.max_length,
            prompts={**layout.prompts, **named_prompts(prompts or {})},
            default_prompt_name=layout.default_prompt_name,
            similarity=similarity or layout.similarity,
            packing=packing,
            gradient_cache=gradient_cache,
        )
        return encoder.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def save(self, folder: str | Path) -> None:
        """Write a folder that sentence-transformers 3.0 to 6.2 (with two heads 5.1 to 6.2) and `load` read.

        Adapters are merged in what is written; the encoder keeps them and can go on training.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = merged_state(self.backbone, self.adapters) if self.adapters else None
        save_backbone(folder, self.backbone, self.tokenizer, self.max_length, weights)
        head, document_head = layers_of_head(self.head)
        # Whoever picks a head by its side must get our prompt of that side, whatever other readers make of a default.
        of_sides = {} if document_head is None else {side: self.prompt_for(side) for side in SIDES}
        layout = Layout(
            backbone=folder,
            pooling=self.pooling,
            head=head,
            document_head=document_head,
            normalize=self.normalize,
            max_length=self.max_length,
            prompts={**self.prompts, **of_sides},
            default_prompt_name=self.default_prompt_name,
            similarity=self.similarity,
        )
        write_layout(folder, layout, width=self.backbone.config.hidden_size)

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.backbone.config.hidden_size) if self.head is None else outputs_of(self.head)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.backbone.device

    @property
    def pad_id(self) -> int:
        """The token id that fills padded places; masked, so any id does where the tokenizer has none."""
        return 0 if self.tokenizer.pad_token_id is None else int(self.tokenizer.pad_token_id)

    def choose_way(self, batch: TextBatch, packing: str, *, gradients: bool = True) -> None:
        """Settle how batches go through the backbone, by trying this one; `way` and `why` say the outcome.

        Args:
            gradients: whether they are compared besides values, as is right before training.

        Raises:
            ModelError: packing="packed" and the architecture cannot.
        """
        set_attention(self.backbone, "padded", self._padded_attention)
        try:
            self.way, self.why = choose_way(self.backbone, batch, self.pad_id, packing, gradients=gradients)
        except NotPackable as reason:
            name = type(self.backbone).__name__
            raise ModelError(
                f"engine.packing is packed, but {name} cannot run packed: {reason}; set it to auto"
            ) from reason
        set_attention(self.backbone, self.way, self._padded_attention)

    def compile_layers(self, batch: TextBatch, dtype: torch.dtype | None = None) -> None:
        """Compile what training runs between attentions, and check it on a batch; `compiled` says the outcome.

        After adapters are in place and what is frozen is frozen; see `compiling`.

        Args:
            dtype: of autocast in training; None for none.

        Raises:
            ModelError: this encoder does not go packed, or it cannot be compiled here.
        """
        if self.way != "packed":
            raise ModelError(
                f"engine.compile is true, but only the packed forward is compiled, and this run goes {self.way} "
                f"({self.why}); set it to false"
            )
        self.compiled = compile_layers(self.backbone, batch, self.pad_id, dtype)

    def forward(self, batch: TextBatch) -> dict[str, Tensor]:
        """The embeddings of a batch by role: (B, D) float32, or (B, K, D) for `negative`."""
        return self.from_pooled(self.pool(batch) if batch.pooled is None else batch.pooled, batch)

    def pool(self, batch: TextBatch) -> Tensor:
        """(N, H) float32: the pooled vector of each distinct text of a batch, which is all of the backbone's work."""
        return pooled_in_pieces(self._pool, batch, self.gradient_cache)

    def _pool(self, batch: TextBatch) -> Tensor:
        return pooled(self.backbone, batch, self.pooling, self.way, self.pad_id)

    def from_pooled(self, vectors: Tensor, batch: TextBatch) -> dict[str, Tensor]:
        """What `forward` gives, from the (N, H) pooled vectors of the batch's texts."""
        if isinstance(self.head, TwoHeads):  # a text goes through the head of each role that it stands in
            return {role: self.embed_pooled(vectors[texts], role=role) for role, texts in batch.index.items()}
        embeddings = self.embed_pooled(vectors)
        return {role: embeddings[texts] for role, texts in batch.index.items()}

    def embed(self, batch: TextBatch, *, role: str | None = None, normalize: bool | None = None) -> Tensor:
        """(N, D) float32 embeddings of the distinct texts of a batch, in its order, all in one role; accelerate's
        autocast, which it wraps around `forward`, does not reach this. Arguments as for `embed_pooled`."""
        return self.embed_pooled(self.pool(batch), role=role, normalize=normalize)

    def embed_pooled(
        self, vectors: Tensor, *, role: str | None = None, normalize: bool | None = None
    ) -> Tensor:
        """Pooled vectors (..., H) -> embeddings (..., D) float32.

        Args:
            role: of the texts, or their side, query or document: picks the head where there are two.
            normalize: scale to length 1; None: as the model says.

        Raises:
            ModelError: there are two heads, and the role has none of them.
        """
        head = self.head_for(role)
        if head is not None:
            vectors = head(vectors)
        scaled = self.normalize if normalize is None else normalize
        return F.normalize(vectors.float(), dim=-1) if scaled else vectors.float()

    def pool_texts(
        self, texts: Sequence[str], *, role: str | None = None, show_progress: bool = False
    ) -> NDArray[np.float32]:
        """(N, H) float32: the pooled vectors of texts in a role, before the head; dropout is off."""
        width = int(self.backbone.config.hidden_size)
        return self.in_batches(
            texts, width, self.pool, prompt=self.prompt_for(role), show_progress=show_progress
        )

    def head_for(self, role: str | None) -> nn.Sequential | None:
        """The head of the texts of a role; ModelError where there are two, and the role has none of them."""
        return self.head.of(role) if isinstance(self.head, TwoHeads) else self.head

    def require_role(self, role: str | None) -> None:
        """Check that texts can be embedded in this role; ModelError where not."""
        self.head_for(role)

    def activation_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        """Trade time for memory in the backbone (Trainer calls this for train.gradient_checkpointing)."""
        name = "activation_checkpointing_enable"
        # transformers before 5.22 has the other name only, for the backbone as for what Trainer calls.
        enable = getattr(self.backbone, name, None) or self.backbone.gradient_checkpointing_enable
        enable(*args, **kwargs)

    gradient_checkpointing_enable = activation_checkpointing_enable

    def freeze(self, what: str | int) -> None:
        """Keep some weights as they are.

        Args:
            what: none, backbone, embeddings, or an integer n: the embeddings and the lowest n layers.

        Raises:
            ModelError: the backbone has fewer than n layers or no list of them, or adapters are in place, with which
                all of the backbone is frozen.
        """
        if self.adapters is not None and what != "none":
            raise ModelError(
                f"model.freeze is {what}, but with model.lora only the adapters train; set it to none"
            )
        freeze(self.backbone, what)

    def add_lora(self, spec: LoraSpec) -> None:
        """Put low-rank adapters into the backbone, of which nothing else trains from now on; a head still does.

        Raises:
            ModelError: peft is not installed, a target module does not exist, or adapters are in place already.
        """
        if self.adapters is not None:
            raise ModelError("this encoder has adapters already: call merge_lora() first")
        self.adapters = add_adapters(self.backbone, spec)
        use_fast_dropout(self.backbone)

    def merge_lora(self) -> None:
        """Add the adapters to the weights and take them out: the same embeddings, and all weights train again."""
        if self.adapters is not None:
            merge_adapters(self.backbone, self.adapters)
            self.adapters = None
