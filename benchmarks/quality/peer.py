"""The peer's side: sentence-transformers' own Trainer, losses and samplers with the settings of an experiment."""

from collections.abc import Sequence
from pathlib import Path

from datasets import Dataset
from safetensors.torch import save_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.training_args import BatchSamplers
from transformers import set_seed

from benchmarks.data import Row
from benchmarks.losses import count_rows, make_loss
from benchmarks.quality.experiments import BASE, Experiment, training_arguments
from benchmarks.quality.trained import Trained
from sbert_train.model.resolve import resolve_model


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
