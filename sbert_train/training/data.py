"""A configuration -> the rows to train on, each set checked against its objective, and the order of their batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import datasets
import numpy as np
from numpy.typing import NDArray

from sbert_train.config import RunConfig
from sbert_train.data.mixing import Mix, MixedBatches
from sbert_train.data.rows import MixedRows, SetRows, text_keys
from sbert_train.data.sources import LoadedSet
from sbert_train.data.tokens import tokenise
from sbert_train.errors import ConfigError, DataError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import TwoHeads
from sbert_train.objectives.registry import ObjectiveSpec
from sbert_train.training.checks import (
    require_both_sides,
    require_classes,
    require_fitting,
    require_same_shape,
)
from sbert_train.training.objectives import RunObjectives
from sbert_train.training.prepare import load
from sbert_train.training.vectors import FrozenTexts, References


@dataclass(frozen=True)
class TrainingData:
    """The rows of all training sets, and the order in which batches take them."""

    sets: tuple[LoadedSet, ...]
    rows: MixedRows
    batches: MixedBatches
    unused: dict[str, tuple[str, ...]]
    """Set name -> roles that it has and the objective does not use."""
    classes: tuple[int | None, ...]
    """For each objective of the run, how many classes the labels of its sets tell apart; None without labels."""


def load_training_data(
    config: RunConfig,
    encoder: SentenceEncoder,
    objectives: RunObjectives,
    *,
    batch_size: int,
    drop_last: bool,
    frozen: FrozenTexts | None = None,
) -> TrainingData:
    """Read, tokenise and mix the training sets.

    Args:
        batch_size: rows of a batch of all processes together.
        drop_last: leave out rows that do not fill a batch.
        frozen: gives the pooled vectors of texts, where the backbone does not train.

    Raises:
        DataError: a set cannot be read, lacks a role, or does not fit the others; or no batch can be filled.
        ConfigError: the batch cannot be divided over the sets that it is to be mixed from.
    """
    draws = config.data.mixing.datasets_per_batch
    if batch_size % draws:
        raise ConfigError(
            f"data.mixing.datasets_per_batch: {draws} sets cannot share a batch of {batch_size} rows evenly; "
            "make train.per_device_train_batch_size a multiple of it"
        )
    loaded = tuple(load(one) for one in config.data.train)
    specs = [objectives.spec_of(number) for number in range(len(loaded))]
    used = [used_roles(one, spec) for one, spec in zip(loaded, specs, strict=True)]
    if isinstance(encoder.head, TwoHeads):
        require_both_sides({role for texts in used for role in texts.column_names})
    references = References(encoder)
    tokens = [_tokenised(texts, encoder) for texts in used]
    rows = [
        SetRows(
            tokens[number],
            objective=objectives.of_set[number],
            pooled=None if frozen is None else frozen.of_rows(texts, tokens[number]),
            reference=references.of_rows(specs[number], texts),
        )
        for number, texts in enumerate(used)
    ]
    if draws > 1:
        require_same_shape(loaded, [one.tokens for one in rows])
    rows = references.fitted(rows, [spec.kind.is_taught for spec in specs])
    batches = MixedBatches(
        [len(one.tokens) for one in rows],
        batch_size,
        mix=Mix(config.data.mixing.strategy, draws, tuple(one.weight for one in config.data.train)),
        seed=config.seed,
        drop_last=drop_last,
        text_keys=[
            text_keys(one.tokens) if config.data.no_duplicates and spec.kind.batch_is_negatives else None
            for one, spec in zip(rows, specs, strict=True)
        ],
        labels=[
            _labels(one) if spec.kind.pairs_labels else None for one, spec in zip(loaded, specs, strict=True)
        ],
    )
    for one in loaded:
        if not batches.draws_of(len(one.rows)):
            raise DataError(
                f"data set {one.name}: its {len(one.rows):,} rows do not fill the {batch_size // draws:,} that a batch "
                "takes from it, so none would be used; lower train.per_device_train_batch_size"
            )
    unused = {
        one.name: tuple(role for role in one.rows.column_names if role not in texts.column_names)
        for one, texts in zip(loaded, used, strict=True)
    }
    return TrainingData(loaded, MixedRows(rows), batches, unused, _classes(loaded, objectives))


def used_roles(one: LoadedSet, spec: ObjectiveSpec) -> datasets.Dataset:
    """The rows of a set with the roles that its objective uses, once they are known to be as it needs them."""
    roles = spec.roles_of(one.name, one.rows.column_names)
    require_fitting(one, roles, spec)
    return one.rows.select_columns(list(roles))


def _tokenised(rows: datasets.Dataset, encoder: SentenceEncoder) -> datasets.Dataset:
    prompts = {role: encoder.prompt_for(role) for role in rows.column_names}
    return tokenise(rows, encoder.tokenizer, max_length=encoder.max_length, prompts=prompts)


def _classes(loaded: Sequence[LoadedSet], objectives: RunObjectives) -> tuple[int | None, ...]:
    """For each objective the highest label of its sets plus one, where it is one of classes."""
    counts: list[int | None] = []
    for number, spec in enumerate(objectives.specs):
        own = [one for i, one in enumerate(loaded) if objectives.of_set[i] == number]
        counts.append(require_classes(own) if spec.kind.labels == "classes" else None)
    return tuple(counts)


def _labels(one: LoadedSet) -> NDArray[np.int64]:
    return np.asarray(one.rows["label"][:], dtype=np.int64)
