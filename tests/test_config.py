"""The configuration: what people write is what they mean, and whatever is wrong is told in one line each, at once."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sbert_train.config import RunConfig, dump_config, load_config
from sbert_train.config.objectives import Cosent, InBatchNegatives
from sbert_train.config.reader import parse_yaml
from sbert_train.config.reference import reference_markdown
from sbert_train.config.schema import TEXT_ROLES, Activation, Pooling, Role
from sbert_train.data.mixing import Strategy
from sbert_train.data.roles import ROLES
from sbert_train.errors import ConfigError
from sbert_train.evaluation.tasks import TASKS
from sbert_train.model.layout import ACTIVATIONS
from sbert_train.model.pooling import POOLINGS

SMALLEST = """
output_dir: runs/x
model: {base: some/model}
data: {train: [{source: pairs.csv}]}
objective: {name: in_batch_negatives}
"""
EVERY_KEY = """
output_dir: runs/nli
seed: 7
model:
  base: package://module/folder
  revision: main
  trust_remote_code: no
  pooling: cls
  max_length: 64
  head: {dim: 256, activation: gelu, dropout: 0.1, layers: 2, shared: no}
  normalize: off
  freeze: none
  lora: {r: 4, alpha: 8, dropout: 0.0, target_modules: [query, value]}
  prompts: {anchor: "query: "}
data:
  train:
    - {name: a, source: stanfordnlp/snli, subset: plain, split: test, columns: {anchor: premise, negative: [n1, n2]},
       where: {label: 0, lang: [en, no]}, score_range: [0, 5], weight: 2, limit: 10,
       objective: {name: cosent, scale: 30}}
  eval:
    - {name: stsb, task: sts, source: dev.csv, subset: null, split: train, columns: {}, where: {},
       score_range: [0, 5], limit: 3}
  mixing: {strategy: weighted, datasets_per_batch: 1}
  no_duplicates: false
  streaming: off
objective: {name: in_batch_negatives, scale: 1e1, similarity: dot, symmetric: yes, gather: no, mask_identical: off,
  hardness: hard, hardness_strength: 5, guide: self, guide_margin: 0.1, margin_strategy: relative, temperature: null,
  learnable_scale: off, matryoshka_dims: [8, 4], matryoshka_weights: [1, 0.5]}
train: {learning_rate: 2e-5, eval_strategy: no, bf16: on}
engine: {packing: padded, precision: fp32, gradient_cache: null, compile: false}
"""


def load(
    folder: Path, text: str | bytes, *overrides: str, environ: dict[str, str] | None = None
) -> RunConfig:
    """What a file with this text says."""
    file = folder / "run.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(file, overrides, environ or {})


def complaints(
    folder: Path, text: str | bytes, *overrides: str, environ: dict[str, str] | None = None
) -> list[str]:
    """The lines of the error that this text raises, without the folder."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *overrides, environ=environ)
    return str(caught.value).replace(str(folder) + "/", "").splitlines()


def with_lines(more: str) -> str:
    """The smallest configuration, a block of it replaced or one added."""
    key = more.split(":", 1)[0]
    kept = [line for line in SMALLEST.strip().splitlines() if not line.startswith(f"{key}:")]
    return "\n".join([*kept, more, ""])


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
    assert [type(one) for one in config.objectives] == [Cosent]
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


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["foo"], ['override "foo"', "expected key.path=value"]),
        (["=3"], ["expected key.path=value"]),
        (["data..x=3"], ["expected key.path=value"]),
        (["data.train.x.source=a"], ["data.train is a list", "from 0 to 1", 'found "x"']),
        (["data.train.5.source=a"], ["data.train is a list", "from 0 to 1", 'found "5"']),
        (["data.eval.1.source=a"], ["data.eval is a list", "expected 0", 'found "1"']),
        (["model.base.x=3"], ['model.base is "some/model", which has no "x"']),
        (["model.prompts={a"], ['override "model.prompts={a"', "not valid YAML"]),
        (["sed=3"], ['override "sed=3"', "sed: unknown key", 'did you mean "seed"']),
        (["model.pooling=men"], ['override "model.pooling=men"', 'found "men"']),
        (["seed.a=1"], ['override "seed.a=1"', "seed: expected an integer", "found a mapping"]),
        (["output_dir="], ['override "output_dir="', "expected text, found null"]),
    ],
)
def test_a_wrong_override_is_named(tmp_path: Path, overrides: list[str], words: list[str]) -> None:
    [line] = complaints(tmp_path, SMALLEST, *overrides)
    assert [word for word in words if word not in line] == []


WRONG_BLOCKS = [
    # unknown keys
    ("sed: 3", ["sed: unknown key", 'did you mean "seed"?', "Known: output_dir, seed, model"]),
    ("on: 3", ["on: unknown key", "Known: output_dir"]),
    ("model: {base: x, norm: true}", ["model.norm: unknown key", "Known: base, revision"]),
    ("model: {base: x, head: {dim: 3, size: 4}}", ["model.head.size: unknown key", "Known: dim, activation"]),
    (
        "data: {train: [{source: a.csv, colums: {}}]}",
        ["data.train.0.colums: unknown key", 'did you mean "columns"?', "Known: source, name"],
    ),
    (
        "data: {train: [{source: a.csv, columns: {anchr: x}}]}",
        ["data.train.0.columns.anchr: unknown key", 'did you mean "anchor"?'],
    ),
    ("model: {base: x, prompts: {query: 'q: '}}", ["model.prompts.query: unknown key", "Known: anchor"]),
    ("model: {base: x, prompts: {score: 'q: '}}", ["model.prompts.score: unknown key"]),
    (
        "objective: {name: cosine_regression, scale: 3}",
        [
            "objective.scale: unknown key of objective cosine_regression",
            "Known: matryoshka_dims, matryoshka_weights, name",
        ],
    ),
    (
        "objective: {name: in_batch_negatives, scal: 3}",
        ["objective.scal: unknown key of objective in_batch_negatives", 'did you mean "scale"?'],
    ),
    ("engine: {pack: auto}", ["engine.pack: unknown key", 'did you mean "packing"?']),
    # types
    ("output_dir: 3", ["output_dir: expected text, found the number 3", "put quotes around it"]),
    ("output_dir: ''", ['output_dir: expected text, found ""']),
    ("output_dir: [a]", ['output_dir: expected text, found ["a"]']),
    ("seed: true", ["seed: expected an integer", "found true"]),
    ("seed: abc", ["seed: expected an integer of at least 0", 'found "abc"']),
    ("seed: 1.5", ["seed: expected an integer", "found the number 1.5"]),
    ("seed: null", ["seed: expected an integer", "found null"]),
    ("model: some/model", ["model: expected a mapping with the keys base", 'found "some/model"']),
    ("model: {base: x, revision: 1e5}", ["model.revision: expected text or null", "put quotes around it"]),
    (
        "model: {base: x, normalize: maybe}",
        ["model.normalize: expected true, false or null", 'found "maybe"'],
    ),
    (
        "model: {base: x, head: 256}",
        ["model.head: expected a mapping with the keys dim", "found the number 256"],
    ),
    (
        "model: {base: x, prompts: 'query: '}",
        ["model.prompts: expected a mapping of anchor", 'found "query:"'],
    ),
    ("model: {base: x, prompts: {anchor: 3}}", ["model.prompts.anchor: expected text, found the number 3"]),
    ("data: {train: {source: a.csv}}", ["data.train: expected a list of mappings", "found a mapping"]),
    ("data: {train: [a.csv]}", ["data.train.0: expected a mapping with the keys source", 'found "a.csv"']),
    (
        "data: {train: [{source: a, where: [x]}]}",
        ["where: expected a mapping of text to text, a number", 'found ["x"]'],
    ),
    (
        "data: {train: [{source: a, where: {x: null}}]}",
        ["where.x: expected text, a number, true or", "found null"],
    ),
    ("data: {train: [{source: a, where: {x: {}}}]}", ["where.x: expected text, a number", "found a mapping"]),
    ("data: {train: [{source: a, score_range: 5}]}", ["score_range: expected [a number, a number]"]),
    (
        "data: {train: [{source: a, score_range: [0, 1, 2]}]}",
        ["score_range: expected [a number, a number] or null"],
    ),
    (
        "data: {train: [{source: a, score_range: [0]}]}",
        ["score_range: expected [a number, a number] or null, found [0]"],
    ),
    ("data: {train: [{source: a, score_range: [0, x]}]}", ["score_range.1: expected a number", 'found "x"']),
    ("objective: in_batch_negatives", ["objective: expected a mapping", 'found "in_batch_negatives"']),
    ("train: [1]", ["train: expected a mapping of text to anything", "found [1]"]),
    ("engine: fast", ["engine: expected a mapping with the keys packing", 'found "fast"']),
    # ranges and choices
    ("seed: -1", ["seed: expected an integer of at least 0", "found the number -1"]),
    ("seed: 5000000000", ["seed: expected", "at most 4294967295"]),
    ("model: {base: x, pooling: avg}", ["model.pooling: expected mean, cls, max", 'found "avg"']),
    ("model: {base: x, max_length: 0}", ["model.max_length: expected an integer of at least 1 or null"]),
    (
        "model: {base: x, freeze: half}",
        ["model.freeze: expected none, backbone, embeddings or an integer of at least 1"],
    ),
    ("model: {base: x, freeze: 0}", ["model.freeze: expected none, backbone, embeddings or an integer"]),
    ("model: {base: x, head: {dim: 0}}", ["model.head.dim: expected an integer of at least 1"]),
    (
        "model: {base: x, head: {dim: 1, dropout: 1}}",
        ["model.head.dropout: expected a number of at least 0 and below 1"],
    ),
    ("model: {base: x, head: {dim: 1, activation: tan}}", ["model.head.activation: expected tanh, relu"]),
    (
        "model: {base: x, head: {dim: 1, layers: -1}}",
        ["model.head.layers: expected an integer of at least 1"],
    ),
    ("data: {train: []}", ["data.train: expected a list of mappings", "found an empty list"]),
    ("data: {train: [{source: ''}]}", ['data.train.0.source: expected text, found ""']),
    ("data: {train: [{source: a, weight: 0}]}", ["data.train.0.weight: expected a number above 0"]),
    ("data: {train: [{source: a, weight: .nan}]}", ["data.train.0.weight: expected a number above 0"]),
    ("data: {train: [{source: a, weight: .inf}]}", ["data.train.0.weight: expected a number above 0"]),
    ("data: {train: [{source: a, limit: 0}]}", ["data.train.0.limit: expected an integer of at least 1"]),
    (
        "data: {train: [{source: a, score_range: [5, 0]}]}",
        ["score_range: expected [lowest, highest], found [5, 0]"],
    ),
    (
        "data: {train: [{source: a, name: a b}]}",
        ["data.train.0.name: expected letters, digits", 'found "a b"'],
    ),
    (
        "data: {train: [{source: a, name: a/b}]}",
        ["data.train.0.name: expected letters, digits", 'found "a/b"'],
    ),
    (
        "data: {train: [{source: a, columns: {anchor: [x, y]}}]}",
        ["columns.anchor: expected one column (only negative"],
    ),
    ("data: {train: [{source: a, columns: {negative: []}}]}", ["columns.negative: expected one column"]),
    ("data: {train: [{source: a, columns: {anchor: ''}}]}", ["columns.anchor: expected text"]),
    (
        "data: {train: [{source: x/a.csv}, {source: y/a.csv}]}",
        ["data.train.1.name: data.train.0 has this name, too", "a name of its own"],
    ),
    (
        "data: {train: [{source: a, name: n}, {source: b, name: n}]}",
        ["data.train.1.name: data.train.0 has this name, too", 'found "n"'],
    ),
    (
        "data: {train: [{source: a}], eval: [{source: b, task: stss}]}",
        ["data.eval.0.task: expected sts, retrieval"],
    ),
    (
        "data: {train: [{source: a}], eval: [{source: b, task: sts, weight: 1}]}",
        ["data.eval.0.weight: unknown key"],
    ),
    (
        "data: {train: [{source: a}], mixing: {strategy: all}}",
        ["data.mixing.strategy: expected proportional, round"],
    ),
    (
        "data: {train: [{source: a}], mixing: {datasets_per_batch: 2}}",
        [
            "data.mixing.datasets_per_batch: expected at most 1, the number of training sets, found the number 2"
        ],
    ),
    ("objective: {name: in_batch_negatives, scale: 0}", ["objective.scale: expected a number above 0"]),
    (
        "objective: {name: in_batch_negatives, similarity: l2}",
        ["objective.similarity: expected cosine or dot"],
    ),
    (
        "objective: {name: mnrl}",
        ["objective.name: expected in_batch_negatives, cosine_regression, cosent,", 'found "mnrl"'],
    ),
    (
        "objective: {scale: 3}",
        ["objective.name: expected in_batch_negatives, ", "or margin_mse, found no name"],
    ),
    ("objective: {name: 3}", ["objective.name: expected in_batch_negatives", "found the number 3"]),
    ("engine: {packing: yes}", ["engine.packing: expected auto, packed, sorted or padded", 'found "yes"']),
    ("engine: {precision: int8}", ["engine.precision: expected auto, fp32, bf16 or fp16"]),
    # missing
    ("model: {}", ["model.base: missing, and needed: Where the weights come from"]),
    ("model: {base: x, head: {}}", ["model.head.dim: missing, and needed"]),
    ("data: {}", ["data.train: missing, and needed"]),
    ("data: {train: [{name: a}]}", ["data.train.0.source: missing, and needed"]),
    ("data: {train: [{source: a}], eval: [{source: b}]}", ["data.eval.0.task: missing, and needed"]),
    # adapters
    (
        "model: {base: x, lora: {rank: 4}}",
        ["model.lora.rank: unknown key", "Known: r, alpha, dropout, target"],
    ),
    (
        "model: {base: x, lora: {r: 0}}",
        ["model.lora.r: expected an integer of at least 1, found the number 0"],
    ),
    (
        "model: {base: x, lora: {dropout: 1}}",
        ["model.lora.dropout: expected a number of at least 0 and below 1"],
    ),
    (
        "model: {base: x, lora: {target_modules: []}}",
        ["model.lora.target_modules: expected a list of text or null, found an empty list"],
    ),
    # what comes later
    (
        "data: {train: [{source: a}], streaming: on}",
        ["data.streaming: not available in this version, leave it false"],
    ),
    (
        "engine: {gradient_cache: 16384}",
        ["engine.gradient_cache: not available in this version, leave it null"],
    ),
    ("engine: {compile: true}", ["engine.compile: not available in this version, leave it false"]),
]


@pytest.mark.parametrize(("freeze", "found"), [("embeddings", '"embeddings"'), ("1", "the number 1")])
def test_adapters_and_freezing_are_told_at_both_keys(tmp_path: Path, freeze: str, found: str) -> None:
    lines = complaints(tmp_path, with_lines(f"model: {{base: x, lora: {{}}, freeze: {freeze}}}"))
    assert [line.partition("model.")[2] for line in lines] == [
        f"freeze: with model.lora only the adapters train: expected none, found {found}",
        "lora: its adapters are all that trains: expected null, or model.freeze none, found a mapping",
    ]
    assert load(tmp_path, with_lines("model: {base: x, lora: {}, freeze: none}")).model.lora is not None


@pytest.mark.parametrize(("block", "words"), WRONG_BLOCKS, ids=[block for block, _ in WRONG_BLOCKS])
def test_a_wrong_block_is_one_line_that_says_what_and_where(
    tmp_path: Path, block: str, words: list[str]
) -> None:
    [line] = complaints(tmp_path, with_lines(block))
    assert line.startswith("run.yaml: ")
    assert [word for word in words if word not in line] == []


WRONG_FILES: list[tuple[str | bytes, list[str]]] = [
    ("", ["the file is empty"]),
    ("# only a comment\n", ["the file is empty"]),
    ("- a\n- b\n", ["expected `key: value` lines at the top level", "found"]),
    ("just text", ["expected `key: value` lines at the top level", 'found "just text"']),
    ("a: [1, 2", ["line 1", "not valid YAML"]),
    ("a: b: c", ["line 1, column 5", "not valid YAML: mapping values are not allowed here"]),
    ("a: 1\n\tb: 2\n", ["line 2", "not valid YAML"]),
    ("a: 1\nb: 2\na: 3\n", ["line 3", 'key "a" was given before, on line 1']),
    ("a: {b: 1, b: 2}\n", ["line 1", 'key "b" was given before']),
    ("? [a, b]\n: c\n", ["line 1", "expected text as a key"]),
    ("a: &x 1\nb: *x\n", ["line 1", "anchors (&) and aliases (*) are not supported"]),
    ("a: *x\n", ["line 1", "anchors (&) and aliases (*)", "quotes"]),
    (
        "a: !!python/object/apply:os.system ['true']\n",
        ["line 1", "tags (tag:yaml.org,2002:python/object/apply:os.s"],
    ),
    ("a: !!str 3\n", ["line 1", "tags (", "not supported"]),
    ("a: !custom x\n", ["tags (!custom) are not supported"]),
    ("a: 1\n---\nb: 2\n", ["line 2", "a second document begins here"]),
    ("[" * 100 + "]" * 100, ["nested more than 20 deep"]),
    ("{a: " * 2000, ["nested more than 20 deep"]),
    ("a: \x01\n", ["not valid YAML"]),
    (b"a: 1\nb: caf\xe9\n", ["line 2", "not UTF-8"]),
    ("output_dir: runs/x\n".encode("utf-16"), ["line 1", "not UTF-8"]),
    ("a: " + "x" * 1_000_001, ["more than 1,000,000 bytes"]),
]


@pytest.mark.parametrize(("text", "words"), WRONG_FILES, ids=[repr(text[:30]) for text, _ in WRONG_FILES])
def test_a_file_that_is_no_configuration_is_one_line(
    tmp_path: Path, text: str | bytes, words: list[str]
) -> None:
    [line] = complaints(tmp_path, text)
    assert line.startswith("run.yaml: ")
    assert [word for word in words if word not in line] == []


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^\S*none.yaml: no such file; .*configs list.*$"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"^\S+: expected a YAML file, found a folder$"):
        load_config(tmp_path)


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = """
output_dir: ${NOWHERE}/x
sed: 3
model: {pooling: avg}
data:
  train: [{source: a.csv, limit: 0}, {source: b.csv, name: a b}]
objective: {name: cosine_regression, scale: 2}
"""
    lines = complaints(tmp_path, text, "seed=x", "foo")
    found = [re.sub(r"^(run\.yaml|override \"[^\"]*\"): ", "", line).split(":")[0] for line in lines]
    assert sorted(found) == [
        "data.train.0.limit",
        "data.train.1.name",
        "expected key.path=value, such as train.learning_rate=2e-5",
        "model.base",
        "model.pooling",
        "objective.scale",
        "output_dir",
        "sed",
        "seed",
    ]


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
    assert len(lines) == 2
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


def test_the_choices_of_the_schema_are_those_of_the_rooms() -> None:
    assert set(get_args(Pooling)) == set(POOLINGS)
    assert set(get_args(Activation)) == set(ACTIVATIONS)
    assert (set(get_args(Role)[1].choices), set(TEXT_ROLES)) == (set(ROLES), set(ROLES) - {"score", "label"})
    fields = RunConfig.model_fields["data"].annotation.model_fields  # type: ignore[union-attr]
    assert get_args(fields["mixing"].annotation.model_fields["strategy"].annotation) == get_args(Strategy)
    assert set(get_args(get_args(fields["eval"].annotation)[0].model_fields["task"].annotation)) == set(TASKS)


def test_the_reference_page_is_up_to_date() -> None:
    page = Path(__file__).parent.parent / "docs" / "config.md"
    assert page.read_text(encoding="utf-8") == reference_markdown(), "run `make docs`"


def test_the_reference_page_has_the_main_metric_of_every_task() -> None:
    page = " ".join(reference_markdown().split())
    missing = [
        kind for kind, task in TASKS.items() if f"`eval_NAME_{task.primary_metric}` for {kind}" not in page
    ]
    assert missing == []


def test_the_reference_page_has_every_key() -> None:
    config = RunConfig.model_validate(parse_yaml(EVERY_KEY))

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list | tuple) else set()

    named = keys(config.model_dump(exclude={"train": True, "data": {"train": {0: {"where", "columns"}}}}))
    assert len(named) > 40
    assert [key for key in named - {"anchor", "train"} if f"| `{key}` |" not in reference_markdown()] == []
