"""What is wrong with a configuration is one line each: what, where, and what to do."""

import re
from pathlib import Path

import pytest

from sbert_train.config import load_config
from sbert_train.errors import ConfigError
from tests.configs import SMALLEST, complaints, load, with_lines

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
        "data: {train: [{source: a, labels: [no, yes, no]}]}",
        ["data.train.0.labels: expected at least two names"],
    ),
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
    (
        "data: {train: [{source: a, policy: {unlabelled: keep}}]}",
        ['data.train.0.policy.unlabelled: expected refuse or drop, found "keep"'],
    ),
    (
        "data: {train: [{source: a, policy: {empty: drop}}]}",
        ["data.train.0.policy.empty: unknown key", 'did you mean "empty_text"?'],
    ),
    (
        "data: {train: [{source: a, policy: drop}]}",
        ["data.train.0.policy: expected a mapping with the keys empty_text, unlabelled", 'found "drop"'],
    ),
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
    (
        "engine: {gradient_cache: 0}",
        ["engine.gradient_cache: expected an integer of at least 1 or null, found the number 0"],
    ),
    (
        "model: {base: b, freeze: backbone}\nengine: {gradient_cache: 4096}",
        [
            "engine.gradient_cache: expected null, as a frozen backbone (model.freeze) keeps nothing for a gradient"
        ],
    ),
    # what comes later
    (
        "data: {train: [{source: a}], streaming: on}",
        ["data.streaming: not available in this version, leave it false"],
    ),
    (
        "model: {base: x, freeze: backbone}\nengine: {compile: true}",
        ["engine.compile: expected false, as a frozen backbone (model.freeze) is not trained"],
    ),
    ("engine: {compile: g++}", ["engine.compile: expected true or false, found"]),
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


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "[1, .nan]", "{a: .inf}"])
def test_a_number_that_is_not_finite_is_told_in_the_train_block_too(tmp_path: Path, value: str) -> None:
    """It has no form in JSON, so that the run's own config.yaml would say something else."""
    (line,) = complaints(tmp_path, with_lines(f"train: {{learning_rate: {value}}}"))
    assert line.startswith("run.yaml: train.learning_rate: expected a finite number, found ")
