"""The classifier of a softmax objective is trained, kept, restored and judged with its model."""

import csv
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sbert_train.errors import ConfigError
from sbert_train.evaluation.models import evaluate_models
from sbert_train.objectives.softmax import CLASSIFIER, load_classifier
from sbert_train.training.prepare import load_tasks
from tests.training.objective_runs import SHORT, block_for, write_nli
from tests.training.runs import (
    config,
    run,
    sentences,
    write_csv,
)


def test_the_classifier_of_the_best_checkpoint_is_kept(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    scored = [(*row[:2], row[3]) for row in sentences(24, seed=100)]
    file = write_csv(tmp_path / "dev.csv", ("sentence1", "sentence2", "score"), scored)
    blocks["data"]["eval"] = [{"source": str(file), "task": "sts"}]
    # What counts as best is turned round where need be, so that it is not the last one.
    for better in (True, False):
        train = {
            "num_train_epochs": 4,
            "greater_is_better": better,
            "learning_rate": 3e-3,
            "save_total_limit": 9,
        }
        result, _ = run(
            tmp_path, tiny_model, **blocks, train=train, output_dir=str(tmp_path / f"run{better}")
        )
        best = json.loads(result.folder.report.read_text())["training"]["best_step"]
        if best < 12:
            break
    assert best < 12
    saved = load_file(result.folder.checkpoints / f"checkpoint-{best}" / "model.safetensors")
    kept = load_classifier(result.folder.model / CLASSIFIER)
    assert torch.equal(kept.linear.weight, saved["objectives.0.loss.linear.weight"])
    last = load_file(result.folder.checkpoints / "checkpoint-12" / "model.safetensors")
    assert not torch.equal(kept.linear.weight, last["objectives.0.loss.linear.weight"])


def test_a_run_from_a_model_with_a_classifier_takes_it_up(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    first, lines = run(tmp_path, tiny_model, **blocks, train=SHORT)
    assert "classifier new, of 3 classes" in lines
    nowhere = {"max_steps": 1, "learning_rate": 1e-12}
    second, lines = run(
        tmp_path, first.folder.model, **blocks, train=nowhere, output_dir=str(tmp_path / "second")
    )
    assert "classifier of 3 classes, that of the base" in lines
    _, lines = run(tmp_path, first.folder.model, train=SHORT, output_dir=str(tmp_path / "of_none"))
    assert "classifier of the base: left behind, as no objective trains it" in lines
    one, other = (
        load_classifier(result.folder.model / CLASSIFIER).linear.weight for result in (first, second)
    )
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)
    blocks["objective"]["concat"] = ["u", "v"]
    _, lines = run(tmp_path, first.folder.model, **blocks, train=SHORT, output_dir=str(tmp_path / "third"))
    (told,) = [line for line in lines if line.startswith("classifier")]
    assert told.startswith("classifier new, of 3 classes: the one of the base is another")


def test_a_run_is_evaluated_by_its_classifier(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    blocks["data"]["eval"] = [{"name": "nli", "source": str(write_nli(tmp_path)), "task": "nli"}]
    result, _ = run(tmp_path, tiny_model, **blocks, train={"num_train_epochs": 30, "learning_rate": 5e-3})
    (task,) = json.loads(result.folder.report.read_text())["evaluation"]["tasks"]
    before, after = (task["scores"][name]["accuracy"]["value"] for name in ("before", "after"))
    assert before < 0.7 < after, "it learns its own training set"
    (again,) = evaluate_models(
        [str(result.folder.model)], load_tasks(config(tmp_path, tiny_model, **blocks).data.eval)[1]
    ).tasks
    assert again.scores[str(result.folder.model)]["accuracy"].value == after, (
        "what is saved is what was judged"
    )


def test_classes_in_words_train_and_are_judged_as_their_numbers(tmp_path: Path, tiny_model: Path) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    names, file = ["contradiction", "neutral", "entailment"], tmp_path / "words.csv"
    numbered = list(csv.DictReader(write_nli(tmp_path).read_text().splitlines()))
    with file.open("w", newline="") as out:
        rows = csv.DictWriter(out, numbered[0])
        rows.writeheader()
        rows.writerows({**row, "label": names[int(row["label"])]} for row in numbered)
    blocks["data"] = {
        "train": [{"source": str(file), "labels": names}],
        "eval": [
            {"name": "words", "source": str(file), "task": "nli", "labels": names},
            {"name": "numbers", "source": str(tmp_path / "nli.csv"), "task": "nli"},
        ],
    }
    result, lines = run(tmp_path, tiny_model, **blocks, train=SHORT)
    assert "classifier new, of 3 classes" in lines and result.comparison is not None
    words, numbers = result.comparison.tasks
    assert words.scores["after"] == numbers.scores["after"]


def test_of_a_matryoshka_softmax_the_classifier_of_all_dimensions_is_kept(
    tmp_path: Path, tiny_model: Path
) -> None:
    blocks = block_for("softmax", tmp_path, tiny_model)
    blocks["objective"]["matryoshka_dims"] = [8, 32, 16]
    result, _ = run(tmp_path, tiny_model, **blocks, train=SHORT)
    assert load_classifier(result.folder.model / CLASSIFIER).dimension == 32


def test_a_task_that_needs_a_classifier_is_refused_at_once_where_nothing_trains_one(
    tmp_path: Path, tiny_model: Path
) -> None:
    data = block_for("cosent", tmp_path, tiny_model)["data"]
    data["eval"] = [{"name": "nli", "source": str(write_nli(tmp_path)), "task": "nli"}]
    with pytest.raises(ConfigError, match=r"data\.eval: task nli of eval set nli judges the classifier"):
        run(tmp_path, tiny_model, data=data, objective={"name": "cosent"})
    assert not (tmp_path / "run").exists(), "nothing was begun"
