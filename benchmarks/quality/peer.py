"""The peer's side: sentence-transformers' own Trainer, losses and samplers with the settings of an experiment."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from safetensors.torch import save_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.training_args import BatchSamplers
from torch import nn
from transformers import set_seed

from benchmarks.quality.data import Row
from benchmarks.quality.experiments import BASE, Experiment, training_arguments
from benchmarks.quality.trained import CLASSES, Trained
from sbert_train.model.resolve import resolve_model

LOSSES: Mapping[str, Callable[..., nn.Module]] = {
    "cosent": losses.CoSENTLoss,
    "cosine_regression": losses.CosineSimilarityLoss,
    "in_batch_negatives": losses.MultipleNegativesRankingLoss,
    "softmax": losses.SoftmaxLoss,
}
"""Name of our objective -> the peer's loss, whose options have the same names where an experiment gives any."""


def train(
    experiment: Experiment, rows: Sequence[Row], seed: int, folder: Path, steps: int | None = None
) -> Trained:
    """Train with sentence-transformers and save into folder/model, as it saves.

    Args:
        steps: see `training_arguments`.
    """
    set_seed(seed)  # its Trainer does so, too, but only when a classifier has been drawn
    model = SentenceTransformer(str(resolve_model(BASE)), device="cpu")
    loss = make_loss(experiment.objective, model)
    rows_seen = count_rows(loss)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(folder / "checkpoints"),
            seed=seed,
            batch_sampler=(
                BatchSamplers.NO_DUPLICATES if experiment.no_duplicates else BatchSamplers.BATCH_SAMPLER
            ),
            **training_arguments(experiment, steps),
        ),
        train_dataset=Dataset.from_list([dict(row) for row in rows]),
        loss=loss,
    )
    result = trainer.train()
    model.save_pretrained(str(folder / "model"), create_model_card=False)
    classifier = None
    if isinstance(loss, losses.SoftmaxLoss):
        classifier = folder / "classifier.safetensors"
        save_file({"weight": loss.classifier.weight.data, "bias": loss.classifier.bias.data}, classifier)
    return Trained(
        model=folder / "model",
        classifier=classifier,
        steps=result.global_step,
        rows_seen=rows_seen(),
        seconds=result.metrics["train_runtime"],
    )


def make_loss(objective: Mapping[str, Any], model: SentenceTransformer) -> nn.Module:
    """The peer's loss for the `objective` block of our configuration."""
    options = {key: value for key, value in objective.items() if key != "name"}
    if objective["name"] == "softmax":
        options |= {"embedding_dimension": model.get_embedding_dimension(), "num_labels": CLASSES}
    return LOSSES[objective["name"]](model, **options)


def count_rows(loss: nn.Module) -> Callable[[], int]:
    """From now on count the rows of the batches that a loss is computed of; the result tells how many so far."""
    counts: list[int] = []

    def count(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        columns = inputs[0]
        counts.append(len(columns[0]["input_ids"]))

    loss.register_forward_pre_hook(count)
    return lambda: sum(counts)
