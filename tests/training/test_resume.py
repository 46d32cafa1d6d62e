"""What trains is in a checkpoint, whatever it is: training that goes on from one ends with the same weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from sbert_train.config import RunConfig
from tests.training.objective_runs import block_for, trainer_of
from tests.training.runs import config, write_triplets

EVERY_TWO_STEPS = {"num_train_epochs": 2, "save_strategy": "steps", "save_steps": 2, "eval_strategy": "no"}
HEAD = {"dim": 16, "dropout": 0.1}
LEARNT = {"name": "in_batch_negatives", "learnable_scale": True}
OF_ITS_OWN: dict[str, tuple[dict[str, Any], str]] = {
    "classifier": ({}, "objectives.0.loss.linear.weight"),
    "scale": ({"objective": LEARNT}, "objectives.0.loss.log_scale"),
    "adapters": ({"model": {"lora": {"r": 4}}}, "lora_A"),
    "two heads": ({"model": {"head": {**HEAD, "shared": False}}}, "weights.head.document.0.linear.weight"),
    "head of a frozen backbone": ({"model": {"head": HEAD, "freeze": "backbone"}}, "weights.0.linear.weight"),
}
"""What has weights besides the backbone: the blocks that ask for it, and (part of) a name of theirs in a checkpoint."""


def settings_for(kind: str, folder: Path, base: Path) -> RunConfig:
    blocks, _ = OF_ITS_OWN[kind]
    if kind == "classifier":
        blocks = block_for("softmax", folder, base)
    else:
        blocks = {"data": {"train": [{"source": str(write_triplets(folder))}]}, **blocks}
    model = {"base": str(base), **blocks.get("model", {})}
    return config(folder, base, **{**blocks, "model": model}, train=EVERY_TWO_STEPS)


@pytest.mark.parametrize("kind", OF_ITS_OWN)
def test_training_that_is_resumed_ends_as_if_never_interrupted(
    kind: str, tmp_path: Path, tiny_model: Path
) -> None:
    """sentence-transformers loses a classifier: its loss is no part of the model that a checkpoint holds."""
    settings = settings_for(kind, tmp_path, tiny_model)
    whole = trainer_of(settings)
    whole.train()
    steps = whole.state.global_step
    checkpoint = Path(str(whole.args.output_dir)) / f"checkpoint-{steps - 2}"
    resumed = trainer_of(settings)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == steps

    expected, found = whole.siamese.state_dict(), resumed.siamese.state_dict()
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []
    of_its_own = next(name for name in expected if OF_ITS_OWN[kind][1] in name)
    saved = load_file(checkpoint / "model.safetensors")[of_its_own]
    begun = trainer_of(settings).siamese.state_dict()[of_its_own]
    assert not torch.equal(saved, begun), "it had trained before the checkpoint"
    assert not torch.equal(saved, expected[of_its_own]), "and went on after it"
