"""What a configuration can say of objectives: every option of every one, for the run and for a set, and no more."""

import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

from sbert_train.config import RunConfig, load_config
from sbert_train.config.objectives import Objective, OfAnyObjective
from sbert_train.config.words import models_of
from sbert_train.errors import ConfigError
from sbert_train.objectives.registry import OBJECTIVES, objective_spec
from sbert_train.training.objectives import run_objectives, similarity_of
from tests.configs import complaints

BLOCKS = {get_args(block.model_fields["name"].annotation)[0]: block for block in models_of(Objective)}
NEEDED: dict[str, dict[str, Any]] = {"embedding_distillation": {"teacher": "big/model"}}
NOT_OF_THE_LOSS = {"name", "teacher", "guide", "temperature", *OfAnyObjective.model_fields}


def config(objective: dict[str, Any] | None, *of_sets: dict[str, Any] | None, **data: Any) -> RunConfig:
    sets = [
        {"name": f"s{i}", "source": "a.csv", "objective": own} for i, own in enumerate(of_sets or (None,))
    ]
    return RunConfig.model_validate(
        {"output_dir": "run", "model": {"base": "b"}, "data": {"train": sets, **data}, "objective": objective}
    )


def complaint(tmp_path: Path, text: str) -> str:
    file = tmp_path / "run.yaml"
    head = "output_dir: x\nmodel: {base: b}\n"
    data = "" if "data:" in text else "data: {train: [{source: a.csv}]}\n"
    file.write_text(head + data + text + "\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    (line,) = str(caught.value).removeprefix(f"{file}: ").splitlines()
    return line


def test_the_schema_and_the_registry_know_the_same_objectives() -> None:
    assert list(BLOCKS) == list(OBJECTIVES)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_options_of_the_schema_are_those_of_the_loss_with_its_defaults(name: str) -> None:
    fields = {key: one for key, one in BLOCKS[name].model_fields.items() if key not in NOT_OF_THE_LOSS}
    loss = OBJECTIVES[name].loss
    known = inspect.signature(loss).parameters
    options = {
        key: one for key, one in known.items() if key not in ("batch", "dimension", "classes", "options")
    }
    if name == "in_batch_negatives":  # its module passes options on to its function
        from sbert_train.objectives.in_batch_negatives import in_batch_negatives

        options = dict(inspect.signature(in_batch_negatives).parameters) | options
        del options["batch"]
    assert set(fields) == {key for key in options if key != "normalize"}
    defaults = {key: options[key].default for key in fields}
    differing = {
        key: (fields[key].default, value) for key, value in defaults.items() if fields[key].default != value
    }
    # Without a guide there is no margin; hardness has no strength of its own accord; scale may be told as temperature.
    assert set(differing) <= {"guide_margin", "hardness_strength", "scale"}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_objective_is_built_from_its_block_alone(name: str) -> None:
    block = BLOCKS[name](name=name, **NEEDED.get(name, {}))
    built = objective_spec(**block.model_dump()).build(8, classes=3)
    assert built.spec.name == name
    assert callable(built.loss)


def test_temperature_is_one_over_scale() -> None:
    assert objective_spec("in_batch_negatives", scale=None, temperature=0.1).options == {"scale": 10.0}
    assert objective_spec("in_batch_negatives", scale=30.0, temperature=None).options == {"scale": 30.0}
    assert objective_spec("in_batch_negatives").options == {"scale": 20.0}


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (
            "{name: in_batch_negatives, scale: 20, temperature: 0.05}",
            "objective.temperature: expected scale or temperature (1 / scale), not both, found the number 0.05",
        ),
        (
            "{name: in_batch_negatives, hardness_strength: 5}",
            "objective.hardness_strength: expected hardness (in_batch, hard or all), too, found the number 5",
        ),
        (
            "{name: in_batch_negatives, hardness: all}",
            'objective.hardness: expected hardness_strength, such as 9, too, found "all"',
        ),
        (
            "{name: in_batch_negatives, guide_margin: 0.1}",
            "objective.guide_margin: expected guide (self, or a model), too, found the number 0.1",
        ),
        (
            "{name: in_batch_negatives, margin_strategy: relative}",
            'objective.margin_strategy: expected guide (self, or a model), too, found "relative"',
        ),
        (
            "{name: triplet, margin: 0}",
            "objective.margin: expected a number above 0, found the number 0",
        ),
        (
            "{name: triplet, distance: dot}",
            'objective.distance: expected cosine, euclidean or manhattan, found "dot"',
        ),
        ("{name: triplet, scale: 3}", "objective.scale: unknown key of objective triplet"),
        (
            "{name: softmax, concat: [u, u]}",
            'objective.concat: expected each part once, found ["u", "u"]',
        ),
        ("{name: softmax, concat: [w]}", "objective.concat.0: expected u, v, difference or product"),
        ("{name: softmax, concat: []}", "objective.concat: expected a list"),
        ("{name: embedding_distillation}", "objective.teacher: missing, and needed: The teacher"),
        (
            "{name: cosent, matryoshka_dims: [4, 4]}",
            "objective.matryoshka_dims: expected each dimension once, found [4, 4]",
        ),
        (
            "{name: cosent, matryoshka_weights: [1]}",
            "objective.matryoshka_weights: expected matryoshka_dims, too, found [1]",
        ),
        (
            "{name: cosent, matryoshka_dims: [8, 4], matryoshka_weights: [1]}",
            "objective.matryoshka_weights: expected 2 numbers, one for each of matryoshka_dims, found [1]",
        ),
    ],
)
def test_options_that_do_not_fit_are_one_line(tmp_path: Path, objective: str, words: str) -> None:
    line = complaint(tmp_path, f"objective: {objective}")
    assert line.startswith(words), line


def test_what_is_wrong_with_the_objective_of_a_set_is_told_with_its_place(tmp_path: Path) -> None:
    text = "data: {train: [{source: a.csv, objective: {name: triplet, margn: 1}}]}"
    assert complaint(tmp_path, text) == (
        'data.train.0.objective.margn: unknown key of objective triplet, did you mean "margin"? '
        "Known: matryoshka_dims, matryoshka_weights, name, distance, margin"
    )
    text = "data: {train: [{source: a.csv, objective: {name: tripled}}]}"
    assert complaint(tmp_path, text).startswith("data.train.0.objective.name: expected in_batch_negatives")


def test_an_objective_is_needed_where_a_set_has_none_of_its_own(tmp_path: Path) -> None:
    assert complaint(tmp_path, "seed: 1").startswith("objective: missing, and needed: the loss; or give each")
    assert config(None, {"name": "cosent"}).objectives[0].name == "cosent"
    text = "data: {train: [{source: a.csv, objective: {name: cosent}}]}\nobjective: {name: angle}"
    assert complaint(tmp_path, text) == (
        "objective: expected null, as each of data.train has an objective of its own, found a mapping"
    )
    with pytest.raises(ValueError, match="keys do not fit together"):
        config(None, {"name": "cosent"}, None)


def test_sets_that_share_batches_must_share_their_objective(tmp_path: Path) -> None:
    text = (
        "data: {mixing: {datasets_per_batch: 2}, "
        "train: [{source: a.csv}, {source: b.csv, objective: {name: cosent}}]}\n"
        "objective: {name: angle}"
    )
    assert complaint(tmp_path, text) == (
        "data.mixing.datasets_per_batch: expected 1, as the sets have different objectives and a batch has one, "
        "found the number 2"
    )
    mixed = config({"name": "cosent"}, {"name": "cosent"}, None, mixing={"datasets_per_batch": 2})
    assert mixed.data.mixing.datasets_per_batch == 2


def test_an_objective_that_no_set_uses_and_sets_that_cannot_share_a_batch_are_told_together(
    tmp_path: Path,
) -> None:
    text = (
        "output_dir: x\nmodel: {base: b}\nobjective: {name: angle}\n"
        "data: {mixing: {datasets_per_batch: 2}, "
        "train: [{source: a.csv, objective: {name: angle}}, {source: b.csv, objective: {name: cosent}}]}\n"
    )
    first, second = complaints(tmp_path, text)
    assert "objective: expected null, as each of data.train has an objective of its own" in first
    assert "datasets_per_batch: expected 1, as the sets have different objectives" in second


def test_sets_with_the_same_objective_share_it_and_others_have_their_own() -> None:
    softmax = {"name": "softmax", "concat": ["u", "v"]}
    run = run_objectives(config({"name": "cosent"}, softmax, None, softmax, {"name": "cosent", "scale": 5.0}))
    assert [spec.name for spec in run.specs] == ["softmax", "cosent", "cosent"]
    assert run.of_set == (0, 1, 0, 2)
    with pytest.raises(ConfigError, match=r"a model keeps one classifier"):
        run_objectives(config(softmax, None, {"name": "softmax"}))


def test_the_similarity_of_the_saved_model_is_that_of_its_objective() -> None:
    blocks = {
        "cosine": config({"name": "cosent"}),
        "dot": config({"name": "in_batch_negatives", "similarity": "dot"}),
        "euclidean": config({"name": "triplet"}),
        "manhattan": config({"name": "contrastive", "distance": "manhattan"}),
    }
    assert {name: similarity_of(one.objectives[0]) for name, one in blocks.items()} == {
        name: name for name in blocks
    }
    mse = config({"name": "embedding_distillation", "teacher": "t"})
    assert similarity_of(mse.objectives[0]) == "cosine"
