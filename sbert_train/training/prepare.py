"""A configuration -> the objects of a run: encoder, training batches, tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import torch

from sbert_train.config import EvalSet, RunConfig, TrainSet
from sbert_train.data.mixing import Mix, MixedBatches
from sbert_train.data.rows import MixedRows, text_keys
from sbert_train.data.sources import LoadedSet, load_set
from sbert_train.data.tokens import tokenise
from sbert_train.errors import ConfigError, DataError
from sbert_train.evaluation.tasks import Task, make_task
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.model.lora import LoraSpec
from sbert_train.objectives.registry import Objective


@dataclass(frozen=True)
class TrainingData:
    """The rows of all training sets, and the order in which batches take them."""

    sets: tuple[LoadedSet, ...]
    rows: MixedRows
    batches: MixedBatches
    unused: dict[str, tuple[str, ...]]
    """Set name -> roles that it has and the objective does not use."""


def load_encoder(config: RunConfig, device: torch.device) -> SentenceEncoder:
    """The encoder of config.model, with what is frozen frozen and its adapters in place."""
    model = config.model
    head = None
    if model.head is not None:
        head = HeadSpec(**model.head.model_dump())
    encoder = SentenceEncoder.load(
        model.base,
        pooling=model.pooling,
        normalize=model.normalize,
        max_length=model.max_length,
        head=head,
        prompts=model.prompts,
        similarity=getattr(config.objective, "similarity", "cosine"),
        packing=config.engine.packing,
        revision=model.revision,
        trust_remote_code=model.trust_remote_code,
        device=device,
    )
    encoder.freeze(model.freeze)
    if model.lora is not None:
        encoder.add_lora(LoraSpec(**model.lora.model_dump()))
    return encoder


def load_training_data(
    config: RunConfig, encoder: SentenceEncoder, objective: Objective, *, batch_size: int, drop_last: bool
) -> TrainingData:
    """Read, tokenise and mix the training sets.

    Args:
        batch_size: rows of a batch of all processes together.
        drop_last: leave out rows that do not fill a batch.

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
    loaded = tuple(_load(one) for one in config.data.train)
    tokenised, unused = [], {}
    for one in loaded:
        roles = objective.roles_of(one.name, one.rows.column_names)
        _require_fitting(one, roles, objective)
        unused[one.name] = tuple(role for role in one.rows.column_names if role not in roles)
        tokenised.append(
            tokenise(
                one.rows.select_columns(list(roles)),
                encoder.tokenizer,
                max_length=encoder.max_length,
                prompts={role: encoder.prompt_for(role) for role in roles},
            )
        )
    if draws > 1:
        _require_same_shape(loaded, tokenised)
    batches = MixedBatches(
        [len(rows) for rows in tokenised],
        batch_size,
        mix=Mix(config.data.mixing.strategy, draws, tuple(one.weight for one in config.data.train)),
        seed=config.seed,
        drop_last=drop_last,
        text_keys=(
            [text_keys(rows) for rows in tokenised]
            if config.data.no_duplicates and objective.batch_is_negatives
            else None
        ),
    )
    for one in loaded:
        if not batches.draws_of(len(one.rows)):
            raise DataError(
                f"data set {one.name}: its {len(one.rows):,} rows do not fill the {batch_size // draws:,} that a batch "
                "takes from it, so none would be used; lower train.per_device_train_batch_size"
            )
    return TrainingData(loaded, MixedRows(tokenised), batches, unused)


def load_tasks(eval_sets: Sequence[EvalSet]) -> tuple[tuple[LoadedSet, ...], tuple[Task, ...]]:
    """Read the eval sets of a configuration and make their tasks."""
    loaded = tuple(_load(one) for one in eval_sets)
    tasks = tuple(
        make_task(one.task, rows.name, rows.rows) for one, rows in zip(eval_sets, loaded, strict=True)
    )
    return loaded, tasks


def _load(one: TrainSet | EvalSet) -> LoadedSet:
    return load_set(
        one.name,
        one.source,
        subset=one.subset,
        split=one.split,
        columns=one.columns,
        where=one.where,
        score_range=one.score_range,
        limit=one.limit,
    )


def _require_fitting(one: LoadedSet, roles: Sequence[str], objective: Objective) -> None:
    """What the objective cannot be trained on, though its roles are there."""
    if objective.batch_is_negatives and len(one.rows) < 2:
        raise DataError(
            f"data set {one.name}: expected at least two rows, for the texts of other rows are the negatives, found "
            f"{len(one.rows)}"
        )
    if "score" in roles:
        scores = np.asarray(one.rows["score"][:])
        low, high = objective.score_range
        if scores.min() < low or scores.max() > high:
            raise DataError(
                f"data set {one.name}: its scores reach from {scores.min():g} to {scores.max():g}, but objective "
                f"{objective.function.__name__} takes {low:g} to {high:g}; set score_range to the ends of your scale, "
                "such as [0, 5]"
            )


def _require_same_shape(loaded: Sequence[LoadedSet], tokenised: Sequence[datasets.Dataset]) -> None:
    """Rows of one batch must have the same roles, and as many negatives."""
    shapes = []
    for rows in tokenised:
        negatives = len(rows[0]["negative"]) if "negative" in rows.column_names else 0
        shapes.append((sorted(rows.column_names), negatives))
    for one, shape in zip(loaded, shapes, strict=True):
        if shape != shapes[0]:
            raise DataError(
                f"data.mixing.datasets_per_batch: {loaded[0].name} has {_shape(shapes[0])}, but {one.name} has "
                f"{_shape(shape)}; sets that share batches need the same roles: set it to 1"
            )


def _shape(shape: tuple[list[str], int]) -> str:
    roles, negatives = shape
    return ", ".join(roles) + (f" ({negatives} each)" if negatives else "")
