"""A configuration means what it looks like, and survives being written."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sbert_train.config import RunConfig, dump_config
from sbert_train.config.objectives import Cosent, InBatchNegatives
from sbert_train.config.reader import parse_yaml
from sbert_train.errors import ConfigError
from tests.configs import EVERY_KEY, SMALLEST, complaints, load, with_lines


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    config = load(tmp_path, EVERY_KEY)
    assert config.model.head is not None
    assert config.model.head.dropout == 0.1
    assert config.model.head.shared is False
    assert config.model.normalize is False
    assert config.model.trust_remote_code is False
    assert config.model.lora is not None
    assert config.model.lora.target_modules == ("query", "value")
    assert config.data.train[0].columns == {"anchor": "premise", "negative": ("n1", "n2")}
    assert config.data.train[0].where == {"label": 0, "lang": ("en", "no")}
    assert config.data.eval[0].score_range == (0.0, 5.0)
    assert config.data.no_duplicates is False
    assert isinstance(config.objective, InBatchNegatives)
    assert config.objective.model_dump() == {
        "name": "in_batch_negatives",
        "scale": 10.0,
        "temperature": None,
        "learnable_scale": False,
        "similarity": "dot",
        "symmetric": True,
        "gather": False,
        "mask_identical": False,
        "hardness": "hard",
        "hardness_strength": 5.0,
        "guide": "self",
        "guide_margin": 0.1,
        "margin_strategy": "relative",
        "matryoshka_dims": (8, 4),
        "matryoshka_weights": (1.0, 0.5),
    }
    assert isinstance(config.data.train[0].objective, Cosent)
    assert [type(one) for one in config.objectives] == [Cosent, InBatchNegatives]
    assert config.train == {"learning_rate": 2e-5, "eval_strategy": "no", "bf16": "on"}
    assert config.engine.precision == "fp32"


def test_a_configuration_is_frozen(tmp_path: Path) -> None:
    config = load(tmp_path, SMALLEST)
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3  # type: ignore[misc]


def test_an_override_wins_over_the_file(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        SMALLEST,
        "seed=1",
        "seed=2",
        "data.train.0.source=*.csv",
        "data.train.1.source=b.jsonl",
        "data.train.1.where={label: [0, 1]}",
        "data.eval.0.source=dev.csv",
        "data.eval.0.task=sts",
        "model.head.dim=8",
        "model.prompts.anchor=query: ",
        "train.learning_rate=3e-5",
        "train.eval_strategy=no",
        "model.revision='007'",
    )
    assert config.seed == 2
    assert [one.source for one in config.data.train] == ["*.csv", "b.jsonl"]
    assert config.data.train[1].where == {"label": (0, 1)}
    assert config.data.eval[0].name == "dev"
    assert config.model.head is not None
    assert config.model.prompts == {"anchor": "query: "}
    assert config.train == {"learning_rate": 3e-5, "eval_strategy": "no"}
    assert config.model.revision == "007"


def test_a_value_from_the_environment_is_used_and_never_written_back(tmp_path: Path) -> None:
    text = with_lines("data: {train: [{source: '${DATA}/${DATA}.csv'}, {source: '${FILE}'}]}")
    environ = {"DATA": "s3cret", "FILE": "t0ken", "SEED": "7", "KEY": "k3y"}
    config = load(tmp_path, text, "seed=${SEED}", "train.hub_token=${KEY}", environ=environ)
    assert config.data.train[0].source == "s3cret/s3cret.csv"
    assert (config.seed, config.train["hub_token"]) == (7, "k3y")

    written = dump_config(config)
    assert [secret for secret in environ.values() if re.search(rf"\b{secret}\b", written)] == []
    assert "source: ${DATA}/${DATA}.csv" in written
    assert load(tmp_path, written, environ=environ) == config


def test_a_value_from_the_environment_is_not_quoted_in_a_message(tmp_path: Path) -> None:
    text = with_lines(
        "data: {train: [{source: a.csv, name: '${NAME}', limit: '${NAME}', score_range: ['${NAME}', 1]}]}"
    )
    lines = complaints(tmp_path, text, environ={"NAME": "s3cret/x"})
    assert len(lines) == 3
    assert all("${NAME}" in line and "s3cret" not in line for line in lines)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("${NO_SUCH}", "model.base: the environment variable NO_SUCH is not set"),
        ("${}", "model.base: expected ${NAME}"),
        ("${A:-b}", "model.base: expected ${NAME}"),
        ("a ${A", "model.base: expected ${NAME}"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_an_error(tmp_path: Path, value: str, words: str) -> None:
    [line] = complaints(tmp_path, with_lines(f"model: {{base: '{value}'}}"), environ={"A": "x"})
    assert words in line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("2E5", 2e5),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("-3", -3),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("True", True),
        ("false", False),
        ("~", None),
        ("", None),
        ("1:30", "1:30"),
        ("2024-01-02", "2024-01-02"),
        ("1_000", "1_000"),
        ("'1e-5'", "1e-5"),
        ('"true"', "true"),
        ("<<", "<<"),
        ("=", "="),
    ],
)
def test_a_yaml_scalar_means_what_it_looks_like(text: str, value: object) -> None:
    found = parse_yaml(f"[{text}]") if text else [parse_yaml("{a: }")["a"]]
    assert found == [value]
    assert type(found[0]) is type(value)


def test_the_whole_configuration_survives_being_written(tmp_path: Path) -> None:
    config = load(tmp_path, EVERY_KEY)
    written = dump_config(config)
    assert load(tmp_path, written) == config
    assert "learning_rate: 2.0e-05" in written


TEXTS = st.text(max_size=12).filter(lambda text: "${" not in text and text.isprintable()) | st.sampled_from(
    [
        "1e-5",
        "no",
        "on",
        "~",
        "007",
        "0o7",
        "0x1",
        "1:30",
        "null",
        ".inf",
        "true",
        "<<",
        "=",
        "- a",
        "a: b",
        "#a",
        "a #b",
    ]
)


VALUES = TEXTS | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


@given(
    prompt=TEXTS,
    where=st.dictionaries(TEXTS, VALUES, max_size=3),
    train=st.dictionaries(TEXTS, VALUES | st.lists(VALUES, max_size=2), max_size=3),
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_values_survive_being_written(
    tmp_path: Path, prompt: str, where: dict[str, Any], train: dict[str, Any]
) -> None:
    config = RunConfig.model_validate(
        {
            "output_dir": "x",
            "model": {"base": "b", "prompts": {"anchor": prompt}},
            "data": {"train": [{"source": "a.csv", "where": where}]},
            "objective": {"name": "cosine_regression"},
            "train": train,
        }
    )
    again = load(tmp_path, dump_config(config))
    assert again == config
    assert {k: type(v) for k, v in again.train.items()} == {k: type(v) for k, v in train.items()}


@given(
    text=st.text()
    | st.lists(
        st.sampled_from([*"{}[]:,-&*!|>'\"#%@`? \n\t", "a", "model", "data", "train", "1e5", "${A}"])
    ).map("".join)
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_raises_anything_but_a_config_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text.encode("utf-8", "surrogatepass"))
    assert [line for line in str(caught.value).split("\n") if not line.isprintable()] == []


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(tree: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value of a tree."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [at] * bool(at) + [place for key, child in children for place in places(child, (*at, key))]


@given(place=st.sampled_from(places(parse_yaml(EVERY_KEY))), junk=JUNK)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_wrong_value_anywhere_is_told_by_its_place(
    tmp_path: Path, place: tuple[str | int, ...], junk: Any
) -> None:
    tree = parse_yaml(EVERY_KEY)
    holder = tree
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = junk
    try:
        load(tmp_path, yaml.safe_dump(tree))
    except ConfigError as error:
        lines = str(error).split("\n")
        assert [line for line in lines if not line.isprintable() or str(place[0]) not in line] == []
