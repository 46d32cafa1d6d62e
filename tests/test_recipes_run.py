"""Every recipe runs for two steps, its Hub models and data sets standing in as tiny ones on a Hub on loopback."""

from pathlib import Path

import pytest

from sbert_train.config import RunConfig, load_config
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.recipes import list_recipes, recipes_folder
from tests.hub import LoopbackHub, hub
from tests.stand_ins import write_stand_ins
from tests.tiny import make_encoder

__all__ = ["hub"]

FIT = "import sys; from sbert_train.cli import main; sys.argv = ['sbert-train', *sys.argv[1:]]; main()"
WIDTH = 32  # of the stand-ins
FEW_STEPS = ("train.max_steps=2", "train.per_device_train_batch_size=8", "engine.precision=fp32")
OWN = {
    # The stand-in has one revision and forty rows.
    "all_minilm_l6_v2": ("model.revision=main",),
    "quora_duplicates": ("data.train.0.split=train", "data.eval.0.split=train"),
    "matryoshka": (f"objective.matryoshka_dims=[{WIDTH},16,8]", "objective.matryoshka_weights=[1,1,1]"),
}
"""What a recipe is told besides."""


def for_stand_ins(name: str, config: RunConfig) -> list[str]:
    """The overrides that make a recipe a run of two steps on its stand-ins."""
    overrides = [*FEW_STEPS, "model.max_length=64", *OWN.get(name, ())]
    if config.model.base.startswith("package://"):  # they take longer, and are what `make quickstart` does
        overrides.append("model.base=base")
    if "eval_steps" in config.train:
        overrides.append("train.eval_steps=1")
    return overrides


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in list_recipes()])
def test_the_recipe_runs_and_leaves_a_model(name: str, hub: LoopbackHub) -> None:
    config = load_config(recipes_folder() / f"{name}.yaml", environ={})
    working = hub.root.parent
    write_stand_ins(config, hub.root, working)
    make_encoder(normalize=True).save(working / "base")
    done = hub.run(FIT, "fit", "--config", f"configs/{name}.yaml", *for_stand_ins(name, config))
    assert done.returncode == 0, done.stderr
    assert "step 2/2" in done.stderr
    encoder = SentenceEncoder.load(working / "runs" / name / "model")
    role = "anchor" if config.model.head and not config.model.head.shared else None
    width = config.model.head.dim if config.model.head else WIDTH
    assert encoder.encode(["the cat saw the dog"], role=role).shape == (1, width)
    for one in config.data.eval:
        assert one.name in done.stdout
    if name == "nli":
        assert "snli: 40 rows read, 16 kept (24 filtered by where)" in done.stdout
        assert "mnli: 40 rows read" in done.stdout and "before" in done.stdout


def test_a_recipe_that_names_what_has_no_stand_in_is_told_so(tmp_path: Path) -> None:
    text = (recipes_folder() / "nli.yaml").read_text(encoding="utf-8")
    file = tmp_path / "nli.yaml"
    changes = (
        ("stanfordnlp/snli", "org/other", r"the data set org/other \(subset None\) has no stand-in"),
        ("distilbert/distilbert-base-uncased", "org/model", "the model org/model has no stand-in"),
        ("premise", "premises", r"snli has no column 'premises'; it has premise, hypothesis, label"),
        ("validation", "dev", r"stsb has no split 'dev'; it has train, validation, test"),
        ("stanfordnlp/snli", "other.csv", r"the file other\.csv has no stand-in"),
    )
    for old, new, told in changes:
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(LookupError, match=told):
            write_stand_ins(load_config(file, environ={}), tmp_path / "hub", tmp_path)
    assert not (tmp_path / "hub").exists()
