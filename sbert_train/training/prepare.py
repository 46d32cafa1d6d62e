"""A configuration -> the encoder and the eval sets of a run."""

from collections.abc import Sequence
from pathlib import Path

import torch

from sbert_train.config import EvalSet, RunConfig, TrainSet
from sbert_train.data.sources import LoadedSet, load_set
from sbert_train.evaluation.tasks import Task, make_task
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import Head, HeadSpec, head_of_layout
from sbert_train.model.lora import LoraSpec
from sbert_train.model.read_layout import read_layout
from sbert_train.model.resolve import resolve_model
from sbert_train.training.objectives import similarity_of


def load_encoder(config: RunConfig, device: torch.device) -> SentenceEncoder:
    """The encoder of config.model, with what is frozen frozen and its adapters in place.

    It runs padded until `choose_way` is called with a batch of the run, unless its backbone is frozen: that reads all
    texts at once.
    """
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
        similarity=similarity_of(config.objectives[0]),
        packing=config.engine.packing if model.freeze == "backbone" else "padded",
        gradient_cache=config.engine.gradient_cache,
        revision=model.revision,
        trust_remote_code=model.trust_remote_code,
        device=device,
    )
    encoder.freeze(model.freeze)
    if model.lora is not None:
        encoder.add_lora(LoraSpec(**model.lora.model_dump()))
    return encoder


def base_folder(config: RunConfig) -> Path:
    """Where the files of the base lie."""
    model = config.model
    return resolve_model(model.base, revision=model.revision, trust_remote_code=model.trust_remote_code)


def own_head(config: RunConfig) -> Head | None:
    """The head that the base came with, where it has one."""
    return head_of_layout(read_layout(base_folder(config)))


def load_tasks(eval_sets: Sequence[EvalSet]) -> tuple[tuple[LoadedSet, ...], tuple[Task, ...]]:
    """Read the eval sets of a configuration and make their tasks."""
    loaded = tuple(load(one) for one in eval_sets)
    tasks = tuple(
        make_task(one.task, rows.name, rows.rows) for one, rows in zip(eval_sets, loaded, strict=True)
    )
    return loaded, tasks


def load(one: TrainSet | EvalSet) -> LoadedSet:
    """The rows of a set of the configuration, in roles."""
    return load_set(
        one.name,
        one.source,
        subset=one.subset,
        split=one.split,
        columns=one.columns,
        where=one.where,
        score_range=one.score_range,
        limit=one.limit,
        labels=one.labels,
        policy=one.policy.model_dump(),
    )
