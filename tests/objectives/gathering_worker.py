"""Run by torchrun in test_gathering: the gradients of one process out of two, written to a file."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from sbert_train.data.batch import TextBatch
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
from tests.objectives.test_gathering import OPTIONS, embeddings_of, make_batch, make_reference
from tests.tiny import make_encoder


def main(output: Path) -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    batch = make_batch()
    rows = len(batch.index["anchor"]) // world
    own = slice(rank * rows, (rank + 1) * rows)
    part = replace(batch, index={role: texts[own] for role, texts in batch.index.items()})
    reference = {role: vectors[own] for role, vectors in make_reference(batch).items()}
    results = {name: loss_and_gradients(name, part, reference) for name in OPTIONS}
    if rank == 0:
        torch.save(results, output)
    # Gloo's threads still let go of tensors, for which they need Python's lock; ending the group with the lock held
    # would then wait for ever. While this waits they are done with it.
    dist.barrier()
    dist.destroy_process_group()


def loss_and_gradients(
    name: str, part: TextBatch, reference: dict[str, Tensor]
) -> tuple[Tensor, list[Tensor | None]]:
    """The mean loss over the processes, and the gradients that DDP has averaged."""
    encoder = make_encoder().eval()
    model = DistributedDataParallel(encoder)
    embeddings = embeddings_of(name, part, model(part), reference)
    loss = in_batch_negatives(embeddings, **OPTIONS[name])  # type: ignore[arg-type]
    loss.backward()
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size(), [p.grad for p in encoder.parameters() if p.requires_grad]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
