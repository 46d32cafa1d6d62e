"""The peer's side: sentence-transformers' own Trainer and losses, over rows in the order that is wanted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer import losses
from torch import nn
from torch.utils.data import SequentialSampler
from transformers import set_seed

from benchmarks.data import Row
from benchmarks.losses import count_rows, make_loss
from benchmarks.speed.clock import Clock, watching
from benchmarks.speed.runs import PEER_FLASH, Run
from benchmarks.speed.sameness import OBJECTIVES, SCALE, training_arguments


class InOrder(DefaultBatchSampler):
    """Its default sampler of batches over rows as they stand, where it would shuffle them."""

    def __init__(self, dataset: Dataset, batch_size: int, drop_last: bool, **options: Any) -> None:
        super().__init__(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last, **options)


def train(run: Run, rows: Sequence[Row], model: Path, folder: Path) -> tuple[Clock, int]:
    """Train on rows in this order, or in the order of the defaults; what was seen of it, and rows trained on."""
    set_seed(run.seed)
    encoder = load(run.side, model)
    loss = loss_of(run, encoder)
    rows_seen = count_rows(loss)
    with watching(run) as clock:
        trainer = SentenceTransformerTrainer(
            model=encoder,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(folder / "checkpoints"), **arguments(run)
            ),
            train_dataset=Dataset.from_list([dict(row) for row in rows]),
            loss=loss,
        )
        trainer.train()
    return clock, rows_seen()


def load(side: str, model: Path, **options: Any) -> SentenceTransformer:
    """Its model, on a GPU where there is one; with flash attention, it does without padding by itself."""
    if side == PEER_FLASH:
        options |= {"attn_implementation": "flash_attention_2"}
    return SentenceTransformer(str(model), model_kwargs=options)


def arguments(run: Run) -> dict[str, Any]:
    """What its training arguments are given besides a folder; nothing where the defaults are compared."""
    if not run.cell.batch:
        return {}
    return {
        **training_arguments(run),
        "seed": run.seed,
        "use_cpu": not torch.cuda.is_available(),  # ours says so by itself; without it bf16 is refused on a CPU
        "bf16": run.cell.precision == "bf16",
        "batch_sampler": InOrder,
        "disable_tqdm": True,  # as ours
    }


def loss_of(run: Run, encoder: SentenceTransformer) -> nn.Module:
    """Its loss; with a gradient cache, in micro-batches of as many tokens as ours."""
    cell = run.cell
    if cell.micro_tokens is not None:
        cached: nn.Module = losses.CachedMultipleNegativesRankingLoss(
            encoder, scale=SCALE, mini_batch_num_tokens=cell.micro_tokens
        )
        return cached
    return make_loss(OBJECTIVES[cell.objective] if cell.batch else {"name": cell.objective}, encoder)
