"""Two processes that gather their negatives equal one process with the double batch, in loss and gradients."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
from tests.tiny import VOCABULARY, make_encoder

ROOT = Path(__file__).parents[2]

OPTIONS: dict[str, dict[str, object]] = {
    "plain": {},
    "symmetric": {"symmetric": True},
    "hardness": {"hardness": "all"},
    "hard": {"hardness": "hard", "symmetric": True},
    "own guide": {"guide_margin": 0.02},
    "guide": {"guide_margin": 0.2, "margin_strategy": "relative", "symmetric": True},
    "alone": {"gather": False},
}


def make_batch() -> TextBatch:
    """Eight rows with two hard negatives each; a positive of the last row is that of the first, across processes."""
    rng = np.random.default_rng(0)

    def text() -> np.ndarray:
        return rng.integers(4, len(VOCABULARY), size=rng.integers(3, 12)).astype(np.int32)

    rows = [{"anchor": text(), "positive": text(), "negative": [text(), text()]} for _ in range(8)]
    rows[-1]["positive"] = rows[0]["positive"]
    return collate(rows)


def make_reference(batch: TextBatch) -> dict[str, torch.Tensor]:
    """What a guide makes of each row, as (B, Dr), and (B, K, Dr) of its negatives."""
    generator = torch.Generator().manual_seed(0)
    return {role: torch.randn(*rows.shape, 4, generator=generator) for role, rows in batch.index.items()}


def embeddings_of(
    name: str, batch: TextBatch, vectors: dict[str, torch.Tensor], reference: dict[str, torch.Tensor]
) -> RoleEmbeddings:
    """The rows of a batch, with their reference where the options of that name are about a guide."""
    found = RoleEmbeddings.of(batch, vectors)
    return replace(found, reference=reference) if name == "guide" else found


def test_two_processes_equal_one_with_the_double_batch(tmp_path: Path) -> None:
    output = tmp_path / "gradients.pt"
    worker = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    worker += ["-m", "tests.objectives.gathering_worker", str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(worker, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    found = torch.load(output, weights_only=True)

    batch = make_batch()
    losses: dict[str, float] = {}
    for name, options in OPTIONS.items():
        encoder = make_encoder().eval()
        whole = embeddings_of(name, batch, encoder(batch), make_reference(batch))
        expected = in_batch_negatives(whole, **options)  # type: ignore[arg-type]
        losses[name] = expected.item()
        expected.backward()
        loss, gradients = found[name]
        same_loss = torch.allclose(loss, expected.detach(), atol=1e-6)
        same_gradients = all(
            torch.allclose(a, p.grad, atol=1e-5, rtol=1e-4)
            for a, p in zip(gradients, (p for p in encoder.parameters() if p.requires_grad), strict=True)
            if p.grad is not None
        )
        gathers = name != "alone"
        assert same_loss == gathers and same_gradients == gathers, (
            f"{name}: without gathering they must differ"
        )
    assert len(set(losses.values())) == len(losses) - 1, "every option but gather must make a difference"
