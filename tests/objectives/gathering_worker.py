"""Run by torchrun in test_gathering: the gradients of one process out of two, written to a file."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
from tests.objectives.test_gathering import OPTIONS, make_batch
from tests.tiny import make_encoder


def main(output: Path) -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    batch = make_batch()
    rows = len(batch.index["anchor"]) // world
    own = {role: texts[rank * rows : (rank + 1) * rows] for role, texts in batch.index.items()}
    results = {}
    for name, options in OPTIONS.items():
        encoder = make_encoder().eval()
        model = DistributedDataParallel(encoder)
        part = replace(batch, index=own)
        loss = in_batch_negatives(RoleEmbeddings.of(part, model(part)), **options)  # type: ignore[arg-type]
        loss.backward()
        total = loss.detach().clone()
        dist.all_reduce(total)
        gradients = [p.grad for p in encoder.parameters() if p.requires_grad]
        results[name] = (total / world, gradients)
    if rank == 0:
        torch.save(results, output)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
