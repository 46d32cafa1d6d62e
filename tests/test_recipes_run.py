"""Every recipe runs for two steps, its Hub models and data sets standing in as tiny ones on a Hub on loopback."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbert_train.model.encoder import SentenceEncoder
from sbert_train.recipes import list_recipes
from tests.hub import LoopbackHub, hub
from tests.tiny import make_backbone, make_encoder, make_tokenizer
from tests.training.runs import sentences, write_csv

__all__ = ["hub"]

FIT = "import sys; from sbert_train.cli import main; sys.argv = ['sbert-train', *sys.argv[1:]]; main()"
FEW_STEPS = ("train.max_steps=2", "train.per_device_train_batch_size=8", "engine.precision=fp32")
OWN = {"quickstart": ("model.base=base",), "stsb_regression": ("model.base=base",)}
"""What a recipe is told besides; training the packaged weights takes longer, and is what `make quickstart` does."""


def put(hub: LoopbackHub, repo: str, split: str, columns: dict[str, list[Any]]) -> None:
    folder = hub.root / "datasets" / repo / "data"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{split}-00000-of-00001.parquet")


@pytest.fixture
def stand_ins(hub: LoopbackHub) -> LoopbackHub:
    """The Hub with what the recipes ask for, and the files that they expect in the working directory."""
    rows = sentences(40)
    pairs = {"premise": [row[0] for row in rows], "hypothesis": [row[1] for row in rows]}
    for repo in ("stanfordnlp/snli", "nyu-mll/multi_nli"):
        put(hub, repo, "train", {**pairs, "label": [[0, 0, 1, 2, -1][i % 5] for i in range(40)]})
    scored: dict[str, list[Any]] = {
        "sentence1": [row[0] for row in rows],
        "sentence2": [row[1] for row in rows],
        "score": [row[3] / 5 for row in rows],
    }
    for split in ("train", "validation"):
        put(hub, "sentence-transformers/stsb", split, scored)

    plain = hub.root / "models/distilbert/distilbert-base-uncased"
    make_backbone("distilbert").save_pretrained(plain)
    make_tokenizer(max_length=512).save_pretrained(plain)
    minilm = make_encoder(normalize=True)
    minilm.save(hub.root / "models/sentence-transformers/all-MiniLM-L6-v2")
    minilm.save(hub.root.parent / "base")
    write_csv(hub.root.parent / "pairs.csv", ("anchor", "positive"), [row[:2] for row in rows])
    return hub


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in list_recipes()])
def test_the_recipe_runs_and_leaves_a_model(name: str, stand_ins: LoopbackHub) -> None:
    overrides = [*FEW_STEPS, "model.max_length=64", *OWN.get(name, ())]
    done = stand_ins.run(FIT, "fit", "--config", f"configs/{name}.yaml", *overrides)
    assert done.returncode == 0, done.stderr
    run = stand_ins.root.parent / "runs" / name
    assert SentenceEncoder.load(run / "model").encode(["the cat saw the dog"]).shape == (1, 32)
    assert "step 2/2" in done.stderr
    if name == "nli":
        assert "snli: 40 rows read, 16 kept (24 filtered by where)" in done.stdout
        assert "mnli: 40 rows read" in done.stdout and "before" in done.stdout
