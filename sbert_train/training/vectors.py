"""Vectors that a run computes once: of a frozen backbone, and of a teacher or guide. Kept on disk by fingerprint.

N texts, H dimensions of the backbone, D dimensions of an embedding.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import datasets
import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import nn

from sbert_train import __version__
from sbert_train.data.roles import TEXT_ROLES
from sbert_train.data.rows import SetRows, token_keys
from sbert_train.data.tokens import tokenizer_identity
from sbert_train.data.vectors import RowVectors, Vectors, cached_vectors, row_vectors
from sbert_train.errors import ConfigError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import Head, TwoHeads
from sbert_train.model.roles import SIDE_OF_ROLE
from sbert_train.objectives.distillation import principal_components
from sbert_train.objectives.registry import ObjectiveSpec

TEXTS_WITH_PROGRESS = 20_000
SAMPLED = 50_000
"""Texts whose embeddings tell the principal components of a teacher."""


class FrozenTexts:
    """The pooled vectors of texts under a backbone that does not train, so that only the head has to be run.

    They are those of evaluation: a frozen backbone has no dropout.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self._identity = [digest(encoder.backbone), *_reading(encoder)]

    def of_rows(self, rows: datasets.Dataset, tokens: datasets.Dataset) -> RowVectors:
        """The pooled vectors of all texts of a training set, and keys by which texts of the same tokens are the same.

        Args:
            tokens: the rows, tokenised.
        """
        kinds = {role: self._encoder.prompt_for(role) for role in TEXT_ROLES if role in rows.column_names}
        return row_vectors(rows, kinds, self._pooled).with_keys(token_keys(tokens))

    @torch.no_grad()
    def encode(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        """(N, D) embeddings, with the head as it is now."""
        pooled = torch.from_numpy(np.array(self._pooled(texts, role))).to(self._encoder.device)
        training = self._encoder.training
        self._encoder.eval()
        try:
            return self._encoder.embed_pooled(pooled, role=role).cpu().numpy()
        finally:
            self._encoder.train(training)

    def _pooled(self, texts: Sequence[str], role: str) -> Vectors:
        """(N, H)."""
        made_from = ["pooled", self._identity, self._encoder.prompt_for(role), list(texts)]
        return cached_vectors(
            made_from, lambda: self._encoder.pool_texts(texts, role=role, show_progress=_is_long(texts))
        )


class References:
    """What other encoders, teachers and guides, make of the texts of training sets."""

    def __init__(self, model: SentenceEncoder) -> None:
        """Prepare for the training of a model."""
        self._dimension = model.dimension
        self._device = model.device
        self._encoders: dict[str, SentenceEncoder] = {}

    def of_rows(self, spec: ObjectiveSpec, rows: datasets.Dataset) -> RowVectors | None:
        """The embeddings of all texts of a training set by the reference of its objective, with its own prompts; None
        where the objective asks for none.

        Raises:
            ModelError: the reference cannot be loaded.
            ConfigError: a teacher has fewer dimensions than the model.
        """
        if spec.reference is None:
            return None
        if spec.reference not in self._encoders:
            self._encoders[spec.reference] = SentenceEncoder.load(spec.reference, device=self._device)
        encoder = self._encoders[spec.reference]
        if spec.kind.is_taught and encoder.dimension < self._dimension:
            raise ConfigError(
                f"objective.teacher: expected at least {self._dimension} dimensions, those of the model, found "
                f"{encoder.dimension}; give the model a head of so many with model.head"
            )
        identity = [digest(encoder), describe(encoder.head), encoder.normalize, *_reading(encoder)]

        def encode(texts: Sequence[str], role: str) -> Vectors:
            made_from = ["embeddings", identity, role, encoder.prompt_for(role), list(texts)]
            return cached_vectors(
                made_from, lambda: encoder.encode(texts, role=role, show_progress=_is_long(texts))
            )

        sides = SIDE_OF_ROLE if isinstance(encoder.head, TwoHeads) else {}
        roles = [role for role in TEXT_ROLES if role in rows.column_names]
        kinds = {role: f"{sides.get(role)} {encoder.prompt_for(role)}" for role in roles}
        return row_vectors(rows, kinds, encode)

    def fitted(self, sets: Sequence[SetRows], taught: Sequence[bool]) -> list[SetRows]:
        """The sets, where the embeddings of a teacher of more dimensions than the model's are projected to as many of
        their principal components over all sets.

        Args:
            taught: for each set, whether its reference is a teacher.
        """
        tables: dict[int, list[Vectors]] = {}
        for one, wanted in zip(sets, taught, strict=True):
            if wanted and one.reference is not None and one.reference.table.shape[1] > self._dimension:
                tables.setdefault(one.objective, []).append(one.reference.table)
        projections = {
            objective: principal_components(_some_of(found), self._dimension)
            for objective, found in tables.items()
        }
        return [
            replace(one, reference=one.reference.projected(projections[one.objective]))
            if one.reference is not None and one.objective in projections
            else one
            for one in sets
        ]


def digest(module: nn.Module, *, but: str | None = None) -> str:
    """The sha256 of the weights of a module, as 64 hex digits; without those that have `but` in their name."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        if but is not None and but in name:
            continue
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
    return found.hexdigest()


def describe(head: Head | None) -> list[str]:
    """What a head does besides multiplying with its weights."""
    return [] if head is None else [str(module) for module in head.modules()]


def _reading(encoder: SentenceEncoder) -> list[Any]:
    """What the pooled vector of a text depends on, besides the weights of the backbone."""
    config = encoder.backbone.config.to_diff_dict()
    settings = {name: value for name, value in config.items() if name not in ("_name_or_path", "dtype")}
    versions = [__version__, transformers.__version__]
    tokens = [encoder.max_length, tokenizer_identity(encoder.tokenizer)]
    return [encoder.pooling, settings, *versions, *tokens]


def _is_long(texts: Sequence[str]) -> bool:
    return len(texts) >= TEXTS_WITH_PROGRESS


def _some_of(tables: Sequence[Vectors]) -> Vectors:
    """At most SAMPLED rows, evenly from all tables: of such large ones more would not change the directions."""
    step = -(-sum(map(len, tables)) // SAMPLED)
    return np.concatenate([table[::step] for table in tables])
