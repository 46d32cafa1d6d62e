"""A configuration of a stranger runs no code, takes no memory and no time."""

import time
from pathlib import Path

import pytest
import yaml

from sbert_train.config.reader import MAX_BYTES, MAX_VALUES
from tests.configs import SMALLEST, complaints, load
from tests.security.attacks import Marker
from tests.security.conftest import Refusal

SECONDS = 10.0  # a bound on any of these, on a slow machine that has much else to do
BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    + [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdef", "bcdefg", strict=True)]
)


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:exec [{}]",
        "!!python/object/new:exec [{}]",
        "!<tag:yaml.org,2002:python/object/apply:exec> [{}]",
    ],
)
def test_tags_are_refused_in_a_file_and_in_an_override(tmp_path: Path, marker: Marker, tag: str) -> None:
    code = '"' + marker.code.strip().replace('"', '\\"') + '"'
    value = tag.format(code)
    marker.require_works(lambda: yaml.unsafe_load(value))
    [line] = complaints(tmp_path, SMALLEST + f"train: {value}\n")
    assert "tags (" in line and "are not supported" in line
    [line] = complaints(tmp_path, SMALLEST, f"train={{a: {value}}}")
    assert "tags (" in line and "are not supported" in line
    load(tmp_path, SMALLEST, f"model.base={value}")  # what does not begin a list or a mapping is text


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    values = yaml.safe_load(BOMB)["g"]
    for _ in range(6):
        assert len(values) == 10
        values = values[0]
    assert values == ["x"] * 10, "no bomb: seven levels of ten make ten million values of 400 bytes"
    [line] = complaints(tmp_path, BOMB)
    assert "anchors (&) and aliases (*) are not supported" in line
    [line] = complaints(tmp_path, SMALLEST, "train={a: &a [1, 2], b: *a}")
    assert "anchors (&) and aliases (*) are not supported" in line


def test_merge_keys_bring_nothing_in(tmp_path: Path) -> None:
    text = "x: {trust_remote_code: true}\nmodel:\n  <<: {trust_remote_code: true}\n  base: a\n"
    assert yaml.safe_load(text)["model"] == {"trust_remote_code": True, "base": "a"}
    lines = complaints(tmp_path, SMALLEST.replace("model: {base: some/model}", text.partition("\n")[2]))
    assert any("<<: unknown key" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 900_000, "nested more than 20 deep"),
        ("{a: " * 200_000, "nested more than 20 deep"),
        ("- " * 400_000, "nested more than 20 deep"),
        ("? " * 400_000, "nested more than 20 deep"),
        ("[" + "1," * (MAX_BYTES // 2 - 9) + "1]", f"more than {MAX_VALUES:,} values"),
        ("".join(f"a{i}: 1\n" for i in range(90_000)), f"more than {MAX_VALUES:,} values"),
        ("a: 1\n" * MAX_BYTES, f"more than {MAX_BYTES:,} bytes"),
        ("a" * (MAX_BYTES - 9) + ": 1", "not valid YAML"),
        ("seed: " + "9" * (MAX_BYTES - 99), "seed: expected an integer"),
        ("seed: 0x" + "f" * (MAX_BYTES - 99), "seed: expected an integer"),
        ("seed: 1e" + "9" * 400, "seed: expected an integer"),
        ('seed: "' + "\\n" * (MAX_BYTES // 2 - 99) + '"', "seed: expected an integer"),
    ],
)
def test_a_large_or_deep_file_is_refused_at_once_in_a_short_line(
    tmp_path: Path, text: str, words: str
) -> None:
    started = time.monotonic()
    lines = complaints(tmp_path, text)
    assert time.monotonic() - started < SECONDS
    assert any(words in line for line in lines)
    assert max(map(len, lines)) < 400


def test_an_override_is_held_to_the_same(tmp_path: Path) -> None:
    for value, words in {"[" * 100_000: "nested more than 20 deep", "9" * 100_000: "seed: expected"}.items():
        [line] = complaints(tmp_path, SMALLEST, f"seed={value}")
        assert words in line and len(line) < 400


def test_a_device_or_a_folder_is_no_configuration(refused: Refusal, tmp_path: Path) -> None:
    assert "expected a YAML file" in refused("fit", "--config", "/dev/zero")
    assert "expected a YAML file" in refused("fit", "--config", tmp_path)
