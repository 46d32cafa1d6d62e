"""The card of a run: its data accounted for, what the Hub calls things, and nothing of the machine that made it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData

from sbert_train.config import RunConfig, load_config
from sbert_train.config.public import public_config, public_place
from sbert_train.export.usage import sides_of
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training.fit import FitResult
from tests.export.test_card_code import code_of, executed
from tests.hub import LoopbackHub, hub
from tests.training.interruptions import trained
from tests.training.runs import config, run, sentences, write_csv

__all__ = ["hub"]

SHORT: dict[str, Any] = {"max_steps": 2}


def card_of(result: FitResult) -> str:
    return (result.folder.model / "README.md").read_text()


def metadata(text: str) -> ModelCardData:
    data = ModelCard(text).data
    assert isinstance(data, ModelCardData)
    return data


def test_it_accounts_for_the_rows_and_names_their_file(tmp_path: Path, tiny_model: Path) -> None:
    rows = [(*one[:2], i % 2) for i, one in enumerate(sentences(40))]
    source = write_csv(tmp_path / "rows.csv", ("anchor", "positive", "good"), [*rows, ("", "a cat", 1)])
    train = {"source": str(source), "name": "pairs", "where": {"good": 1}}
    settings = config(tmp_path, tiny_model, train=SHORT).model_dump(mode="json")
    settings["data"]["train"] = [train]
    result, _ = trained(RunConfig.model_validate(settings))
    text = card_of(result)
    assert (
        "- pairs: 41 rows read, 20 kept (20 filtered by where; 1 dropped: empty anchor); from rows.csv\n"
        in text
    )
    data = metadata(text)
    assert data.tags is not None
    assert {"dataset_size:20", "loss:MultipleNegativesRankingLoss"} <= set(data.tags)
    assert data.datasets is None and data.base_model is None and data.license is None


def test_no_folder_of_the_machine_is_in_it(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model, train=SHORT)
    assert str(tmp_path) in result.folder.config.read_text(), "the premise: the run was told such paths"
    text = card_of(result)
    assert str(tmp_path) not in text and str(tiny_model.parent) not in text
    assert f"Fine-tuned from `{tiny_model.name}` with" in text
    (block,) = re.findall(r"~~~~yaml\n(.*?)\n~~~~", text, re.DOTALL)
    told = yaml.safe_load(block)
    assert told["output_dir"] == "run" and told["model"]["base"] == tiny_model.name
    assert told["data"]["train"][0]["source"] == "triplets0.csv"
    assert told["data"]["eval"][0]["source"] == "scored100.csv"


def test_a_public_configuration_is_the_same_but_for_the_folders_of_paths(tmp_path: Path) -> None:
    tree: dict[str, Any] = {
        "output_dir": "~/runs/x",
        "model": {"base": "../bases/mine", "prompts": {"anchor": "/search "}},
        "data": {
            "train": [
                {"source": "/data/acme/*.csv", "where": {"path": "/kept"}, "name": "a"},
                {"source": "org/data", "objective": {"name": "cosent"}, "name": "b"},
                {"source": "rel/rows.csv", "name": "c"},
            ]
        },
        "objective": {"name": "in_batch_negatives", "guide": "/models/guide"},
        "train": {"run_name": "mine", "logging_dir": "/home/me/logs", "optim_args": {"x": ["~/y", "z"]}},
    }
    settings = RunConfig.model_validate(tree)
    told = yaml.safe_load(public_config(settings))
    expected = settings.model_dump(mode="json")
    expected["output_dir"], expected["model"]["base"] = "x", "mine"
    expected["data"]["train"][0]["source"] = "*.csv"
    expected["objective"]["guide"] = "guide"
    expected["train"] |= {"logging_dir": "logs", "optim_args": {"x": ["y", "z"]}}
    assert told == expected


def test_what_the_readme_says_of_paths_in_the_card_is_so() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`([^`]+)`\s+(?:is|stays)\s+`([^`]+)`", text)
    assert len(pairs) == 2 and {given == told for given, told in pairs} == {True, False}
    assert [public_place(given) for given, _ in pairs] == [told for _, told in pairs]
    assert [public_place(f"{start}/a/pairs.csv") for start in ("~", "..", "my data dir")] == [
        *("pairs.csv", "pairs.csv", "my data dir/a/pairs.csv")
    ]


def test_the_model_of_a_seed_is_called_after_the_series(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train=SHORT)
    result, _ = trained(settings.for_seed(3))
    assert card_of(result).split("---\n")[2].lstrip().startswith("# run-seed-3\n")
    assert metadata(card_of(result)).model_name == "run-seed-3"


@pytest.mark.parametrize(
    "model",
    [
        {"prompts": {"anchor": "the cat ", "positive": "a dog "}},
        {"head": {"dim": 8, "shared": False}},
        {"head": {"dim": 8, "layers": 2}, "pooling": "max"},
        {"lora": {"r": 2}, "pooling": "weighted_mean", "normalize": True},
    ],
    ids=["prompts", "two heads", "head", "lora"],
)
def test_the_code_in_the_card_of_a_run_gives_the_embeddings_of_its_model(
    model: dict[str, Any], tmp_path: Path, tiny_model: Path
) -> None:
    result, _ = run(tmp_path, tiny_model, model={"base": str(tiny_model), **model}, train=SHORT)
    encoder = SentenceEncoder.load(result.folder.model)
    blocks = code_of(card_of(result))
    assert len(blocks) == 2
    for block in blocks:
        names = executed(block, result.folder.model)
        for side in sides_of(encoder):
            expected = encoder.encode(side.texts, role=side.role)
            np.testing.assert_allclose(names[side.variable], expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_data_sets_of_the_hub_are_named_as_the_hub_has_them(
    hub: LoopbackHub, tmp_path: Path, tiny_model: Path
) -> None:
    folder = hub.root / "datasets" / "org" / "pairs"
    folder.mkdir(parents=True)
    rows = [{"anchor": one[0], "positive": one[1]} for one in sentences(24)]
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows[:8]))
    settings = config(tmp_path, tiny_model, train=SHORT).model_dump(mode="json")
    settings["data"] = {
        "train": [{"source": "org/pairs"}],
        "eval": [
            {"source": "org/pairs", "name": "all", "task": "retrieval", "split": "test"},
            {"source": "org/pairs", "name": "some", "task": "retrieval", "split": "test", "limit": 4},
        ],
    }
    (tmp_path / "hub.yaml").write_text(yaml.safe_dump(settings))
    done = hub.run(
        "import sys\nfrom sbert_train.cli import main\nsys.argv = ['sbert-train', *sys.argv[1:]]\nmain()",
        *("fit", "--config", str(tmp_path / "hub.yaml")),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    text = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "- pairs: 24 rows read, all kept; from org/pairs (split train)\n" in text
    data = metadata(text)
    assert data.datasets == ["org/pairs"]
    found = {one.dataset_name: (one.dataset_type, one.dataset_split) for one in data.eval_results or []}
    assert found == {"all": ("org/pairs", "test"), "some": ("unknown", None)}


def test_what_flatters_the_results_is_said_beside_them(tmp_path: Path, tiny_model: Path) -> None:
    rows = sentences(24, seed=5)
    train = write_csv(tmp_path / "pairs.csv", ("anchor", "positive"), [row[:2] for row in rows])
    scored = [(*row[:2], row[3]) for row in rows[:3]] + [
        (a + " red", b + " blue", s) for a, b, _, s in rows[3:20]
    ]
    dev = write_csv(tmp_path / "dev.csv", ("sentence1", "sentence2", "score"), scored)
    data = {
        "train": [{"source": str(train)}],
        "eval": [{"source": str(dev), "task": "sts", "score_range": [0, 5]}],
    }
    text = card_of(run(tmp_path, tiny_model, data=data, train=SHORT)[0])
    results = text.partition("## Results")[2].partition("## Training")[0]
    assert "3 of 20 rows of dev are in the training data, too (pairs)" in results
    assert "The model was kept for its dev_spearman_cosine: the best of several figures" in results
    sound = card_of(
        run(tmp_path, tiny_model, output_dir=str(tmp_path / "x"), train={**SHORT, "eval_strategy": "no"})[0]
    )
    assert "the best of several" not in sound and "in the training data" not in sound


def test_a_split_and_a_subset_of_the_environment_are_not_told(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIT_NAME", "validation")
    file = tmp_path / "run.yaml"
    file.write_text(
        f"output_dir: {tmp_path / 'run'}\nmodel: {{base: {tiny_model}}}\n"
        "data: {train: [{source: 'builtin:contrast', split: '${SPLIT_NAME}', score_range: [0, 5], limit: 16}]}\n"
        "objective: {name: cosine_regression}\ntrain: {max_steps: 1, per_device_train_batch_size: 4}\n"
    )
    text = card_of(trained(load_config(file))[0])
    assert "from builtin:contrast (split ${SPLIT" in text.replace("\\", "") and "validation" not in text
