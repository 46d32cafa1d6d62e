"""What a run is made of: read, checked and put together before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import TrainingArguments

from sbert_train.config import RunConfig
from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.data.sources import LoadedSet
from sbert_train.errors import ConfigError
from sbert_train.evaluation.tasks import Task
from sbert_train.training.data import TrainingData, load_training_data
from sbert_train.training.objectives import (
    RunObjectives,
    build_objectives,
    require_dimensions,
    require_trainable,
    run_objectives,
)
from sbert_train.training.prepare import base_folder, load_encoder, load_tasks
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.vectors import FrozenTexts

_TRIED_ROWS = 8  # of the first batch, packed and padded: enough to tell, whatever the size of a batch


@dataclass(frozen=True)
class Parts:
    """A run before its first step."""

    objectives: RunObjectives
    model: SiameseModel
    classifier: str | None
    """What became of the classifier that lies beside the base, in words; None where there is none."""
    data: TrainingData
    frozen: FrozenTexts | None
    """The vectors of texts under a backbone that does not train; None where it does."""
    eval_sets: tuple[LoadedSet, ...]
    tasks: tuple[Task, ...]
    """The task of each eval set."""
    first_batch: TextBatch

    @property
    def evaluated_dims(self) -> list[int]:
        """The dimensions at which the tasks are run besides the model's own."""
        return [dim for dim in self.objectives.matryoshka_dims if dim < self.model.encoder.dimension]


def load_parts(config: RunConfig, args: TrainingArguments) -> Parts:
    """Read the model and the data of a run, see that they fit together, and put the loss on top.

    Random weights are drawn on the way: torch must have been seeded.

    Raises:
        SbertTrainError: the configuration, the data or the model is not as it must be.
    """
    objectives = run_objectives(config)
    # The first process downloads, reads and tokenises; the others find it all in the cache.
    with args.main_process_first():
        encoder = load_encoder(config, args.device)
        require_dimensions(objectives, encoder)
        require_trainable(objectives, encoder)
        frozen = FrozenTexts(encoder) if config.model.freeze == "backbone" else None
        data = load_training_data(
            config,
            encoder,
            objectives,
            frozen=frozen,
            batch_size=args.per_device_train_batch_size * args.world_size,
            drop_last=args.dataloader_drop_last or args.world_size > 1,
        )
        eval_sets, tasks = load_tasks(config.data.eval)
    first = next(iter(data.batches))
    if frozen is None:
        tried = collate(data.rows.__getitems__(first[:_TRIED_ROWS])).to(args.device)
        encoder.choose_way(tried, config.engine.packing)
        if config.engine.compile:
            encoder.compile_layers(tried, _autocast(args))
    first_batch = collate(data.rows.__getitems__(first))
    losses = build_objectives(objectives, encoder, data.classes)
    model = SiameseModel(encoder, losses, frozen=frozen is not None)
    _require_classifier(model, tasks)
    classifier = model.restore_classifier(base_folder(config))
    return Parts(objectives, model, classifier, data, frozen, eval_sets, tasks, first_batch)


def _autocast(args: TrainingArguments) -> torch.dtype | None:
    """What Trainer computes matrix products in, where that is not float32."""
    return torch.bfloat16 if args.bf16 else torch.float16 if args.fp16 else None


def _require_classifier(model: SiameseModel, tasks: Sequence[Task]) -> None:
    """A task that judges a classifier needs one that this run trains: that of a base would not fit what comes out."""
    for task in tasks:
        if task.uses_classifier and model.classifier is None:
            raise ConfigError(
                f"data.eval: task {task.kind} of eval set {task.name} judges the classifier that objective softmax "
                "trains, and no training set has this objective"
            )
