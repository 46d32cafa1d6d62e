"""The sentence encoder: one backbone, a pooling, a head and a normalisation, shared by all texts of a batch.

N distinct texts of a batch, B rows, K negatives of a row, T tokens of all texts, H dimensions of the backbone,
D dimensions of an embedding.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from sbert_train.data.batch import TextBatch, pack
from sbert_train.errors import ModelError
from sbert_train.model.attention import NotPackable
from sbert_train.model.backbone import check_max_length, layers_of, load_backbone
from sbert_train.model.head import HeadSpec, head_from_layers, layers_of_head, make_head
from sbert_train.model.layout import Layout
from sbert_train.model.packing import choose_way, pooled, set_attention
from sbert_train.model.read_layout import read_layout
from sbert_train.model.resolve import resolve_model
from sbert_train.model.write_layout import write_layout

PROMPT_NAMES = {"anchor": "query", "positive": "document", "negative": "document"}
"""Role -> the name by which sentence-transformers' encode_query and encode_document look its prompt up."""

_PROBE_LENGTHS = (3, 4, 9, 16, 17)


class SentenceEncoder(nn.Module):
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
        head: nn.Sequential | None = None,
        normalize: bool = False,
        max_length: int | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity: str | None = None,
        packing: str = "auto",
    ) -> None:
        """Put the parts together.

        Args:
            pooling: a name of `sbert_train.model.pooling.POOLINGS`.
            max_length: tokens of a text, special ones included; what is longer is cut. None: no limit.
            prompts: prompt name -> text put before each text; see `prompt_for`.
            similarity: what these embeddings are meant to be compared with, written into the saved folder.
            packing: auto, packed, sorted or padded: how batches go through the backbone. The result is the same.

        Raises:
            ModelError: packing="packed" and the architecture cannot run packed.
        """
        super().__init__()
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.pooling = pooling
        self.head = head
        self.normalize = normalize
        self.max_length = max_length
        self.prompts = dict(prompts or {})
        self.default_prompt_name = default_prompt_name
        self.similarity = similarity
        self._padded_attention: str = backbone.config._attn_implementation or "eager"
        self._do_not_train_the_pooler()
        self.way, self.why = "", ""
        self.choose_way(self._probe(), packing)

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
        check_max_length(base, backbone, max_length)
        if head is not None:
            head_module: nn.Sequential | None = make_head(head, backbone.config.hidden_size)
        else:
            head_module = head_from_layers(layout.head) if layout.head else None
        named = _named_prompts(prompts or {})
        encoder = cls(
            backbone,
            tokenizer,
            pooling=pooling or layout.pooling or "mean",
            head=head_module,
            normalize=layout.normalize if normalize is None else normalize,
            max_length=max_length or layout.max_length,
            prompts={**layout.prompts, **named},
            default_prompt_name=layout.default_prompt_name,
            similarity=similarity or layout.similarity,
            packing=packing,
        )
        return encoder.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def save(self, folder: str | Path) -> None:
        """Write a sentence-transformers folder that its versions 3.0 to 6.2 and `load` read."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.backbone.save_pretrained(folder)
        # Other loaders, such as those in a browser, look for the length of a text nowhere else.
        self.tokenizer.model_max_length = self.max_length or self.tokenizer.model_max_length
        self.tokenizer.save_pretrained(folder)
        layout = Layout(
            backbone=folder,
            pooling=self.pooling,
            head=() if self.head is None else layers_of_head(self.head),
            normalize=self.normalize,
            max_length=self.max_length,
            prompts=self.prompts,
            default_prompt_name=self.default_prompt_name,
            similarity=self.similarity,
        )
        write_layout(folder, layout, width=self.backbone.config.hidden_size)
        # safetensors keeps its files to their owner, but a model is there to be served by someone else, too.
        for weights in folder.rglob("*.safetensors"):
            weights.chmod((folder / "config.json").stat().st_mode)

    @property
    def dimension(self) -> int:
        """D."""
        if self.head is None:
            return int(self.backbone.config.hidden_size)
        return layers_of_head(self.head)[-1].out_features

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.backbone.device

    @property
    def pad_id(self) -> int:
        """The token id that fills padded places; masked, so any id does where the tokenizer has none."""
        return 0 if self.tokenizer.pad_token_id is None else int(self.tokenizer.pad_token_id)

    def prompt_for(self, role: str | None) -> str:
        """The text put before a text of a role: the prompt of that name, else query for an anchor and document for
        a positive or negative, else the model's default prompt, else nothing."""
        for name in (role, PROMPT_NAMES.get(role or ""), self.default_prompt_name):
            if name is not None and name in self.prompts:
                return self.prompts[name]
        return ""

    def choose_way(self, batch: TextBatch, packing: str) -> None:
        """Settle how batches go through the backbone, by trying this one; `way` and `why` say the outcome.

        Raises:
            ModelError: packing="packed" and the architecture cannot.
        """
        set_attention(self.backbone, "padded", self._padded_attention)
        try:
            self.way, self.why = choose_way(self.backbone, batch, self.pad_id, packing)
        except NotPackable as reason:
            name = type(self.backbone).__name__
            raise ModelError(
                f"engine.packing is packed, but {name} cannot run packed: {reason}; set it to auto"
            ) from reason
        set_attention(self.backbone, self.way, self._padded_attention)

    def forward(self, batch: TextBatch) -> dict[str, Tensor]:
        """The embeddings of a batch by role: (B, D) float32, or (B, K, D) for `negative`."""
        return self.from_pooled(self.pool(batch) if batch.pooled is None else batch.pooled, batch)

    def pool(self, batch: TextBatch) -> Tensor:
        """(N, H) float32: the pooled vector of each distinct text of a batch, which is all of the backbone's work."""
        return pooled(self.backbone, batch, self.pooling, self.way, self.pad_id)

    def from_pooled(self, vectors: Tensor, batch: TextBatch) -> dict[str, Tensor]:
        """What `forward` gives, from the (N, H) pooled vectors of the batch's texts."""
        embeddings = self.embed_pooled(vectors)
        return {role: embeddings[texts] for role, texts in batch.index.items()}

    def embed(self, batch: TextBatch, *, normalize: bool | None = None) -> Tensor:
        """(N, D) float32 embeddings of the distinct texts of a batch, in its order; accelerate's autocast, which it
        wraps around `forward`, does not reach this."""
        return self.embed_pooled(self.pool(batch), normalize=normalize)

    def embed_pooled(self, vectors: Tensor, *, normalize: bool | None = None) -> Tensor:
        """Pooled vectors (..., H) -> embeddings (..., D) float32.

        Args:
            normalize: scale to length 1; None: as the model says.
        """
        if self.head is not None:
            vectors = self.head(vectors)
        scaled = self.normalize if normalize is None else normalize
        return F.normalize(vectors.float(), dim=-1) if scaled else vectors.float()

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
            role: anchor, positive, ... or a prompt name: selects the prompt, see `prompt_for`.
            prompt: put before each text in place of the role's prompt.
            batch_size: texts per forward; they are sorted by length over the whole of `texts` first.
            normalize: scale to length 1; None: as the model says.
            show_progress: a bar on stderr.

        Returns:
            (N, D) float32, or (D,) for a single string; on the CPU.
        """
        if isinstance(texts, str):
            return self.encode(
                [texts],
                role=role,
                prompt=prompt,
                normalize=normalize,
                convert_to=convert_to,
            )[0]
        before = self.prompt_for(role) if prompt is None else prompt
        embeddings = self._in_batches(
            [before + text for text in texts],
            self.dimension,
            lambda batch: self.embed(batch, normalize=normalize),
            batch_size=batch_size,
            show_progress=show_progress,
        )
        return embeddings if convert_to == "torch" else embeddings.numpy()

    @torch.no_grad()
    def pool_texts(
        self, texts: Sequence[str], *, role: str | None = None, batch_size: int = 64
    ) -> NDArray[np.float32]:
        """(N, H): the pooled vectors of texts, before the head, in float32 with dropout off; see `encode`."""
        prompted = [self.prompt_for(role) + text for text in texts]
        width = int(self.backbone.config.hidden_size)
        return self._in_batches(prompted, width, self.pool, batch_size=batch_size).numpy()

    def _in_batches(
        self,
        texts: Sequence[str],
        width: int,
        function: Callable[[TextBatch], Tensor],
        *,
        batch_size: int,
        show_progress: bool = False,
    ) -> Tensor:
        """(N, width) on the CPU: what a function makes of batches of the texts, the longest first."""
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
            ModelError: the backbone has fewer than n layers, or nothing would be left to train.
        """
        if what == "none":
            return
        if what == "backbone":
            if self.head is None:
                raise ModelError(
                    "model.freeze is backbone and there is no head: nothing is left to train; add model.head"
                )
            self.backbone.requires_grad_(False)
            return
        self.backbone.get_input_embeddings().requires_grad_(False)
        for name, module in self.backbone.named_modules():
            if name == "embeddings":
                module.requires_grad_(False)
        if what == "embeddings":
            return
        layers = layers_of(self.backbone)
        if int(what) > len(layers):
            raise ModelError(f"model.freeze is {what}, but this backbone has {len(layers)} layers")
        if int(what) == len(layers) and self.head is None:
            raise ModelError(
                f"model.freeze is {what}, all layers of this backbone, and there is no head: nothing is left to "
                "train; freeze fewer, or add model.head"
            )
        for layer in layers[: int(what)]:
            layer.requires_grad_(False)

    def _do_not_train_the_pooler(self) -> None:
        # The next-sentence pooler of BERT and its kin is not part of an embedding. It stays in the saved model, for
        # transformers would warn of its absence, but an optimizer or DDP must not wait for its gradient.
        pooler = getattr(self.backbone, "pooler", None)
        if isinstance(pooler, nn.Module):
            pooler.requires_grad_(False)

    def _probe(self) -> TextBatch:
        """A few texts of different lengths, of whatever the first token ids stand for."""
        count = min(self.backbone.config.vocab_size, 1_000)
        special = set(self.tokenizer.all_special_ids)
        words = [i for i in range(count) if i not in special]
        lengths = [n for n in _PROBE_LENGTHS if self.max_length is None or n <= self.max_length] or [1]
        texts = [
            np.array([words[(7 * n + 3 * i) % len(words)] for i in range(n)], dtype=np.int32) for n in lengths
        ]
        return pack(texts)[0].to(self.backbone.device)


def _named_prompts(prompts: Mapping[str, str]) -> dict[str, str]:
    """Prompt name -> text; positives and negatives are documents both, and have one prompt."""
    named: dict[str, str] = {}
    for role, text in prompts.items():
        name = PROMPT_NAMES.get(role, role)
        if named.setdefault(name, text) != text:
            roles = [role for role in prompts if PROMPT_NAMES.get(role, role) == name]
            raise ModelError(
                f"prompts: {' and '.join(roles)} share the prompt {name!r}: expected one text, found "
                f"{named[name]!r} and {text!r}"
            )
    return named
