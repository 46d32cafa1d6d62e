"""YAML as people mean it: the scalars of YAML 1.2, no repeated keys, nothing that runs code or blows up.

PyYAML reads YAML 1.1, where `no` is false, `1e-5` is text and 1:30 is ninety. Here true and false alone are booleans
(a key that wants a boolean takes yes, no, on and off too), numbers are numbers, and the rest is text.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from sbert_train.errors import ConfigError

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_VALUES = 20_000  # read in half a second; a megabyte of the shortest ones would take half a minute

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,400}")
_BASED = re.compile(r"0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def read_yaml_file(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        ConfigError: no such file, not UTF-8, not YAML, not a mapping, or YAML that we refuse; with the line.
    """
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file; `sbert-train configs list` names the recipes that are shipped"
        )
    if not path.is_file():
        raise ConfigError(f"{path}: expected a YAML file, found a folder")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line}: not UTF-8; save the file as UTF-8") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: expected a configuration, found a file of more than {MAX_BYTES:,} bytes")
    try:
        tree = parse_yaml(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if tree is None:
        raise ConfigError(
            f"{path}: the file is empty; `sbert-train configs show local_csv` shows what it may hold"
        )
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: expected `key: value` lines at the top level, found {describe(tree)}")
    return tree


def parse_yaml(text: str) -> Any:
    """The value of one YAML document: dicts with text keys, lists, text, numbers, booleans and None.

    Raises:
        ConfigError: not YAML, or anchors, aliases, tags, repeated keys, more than one document, deep nesting, or far
            too many values.
    """
    try:
        _refuse_tricks(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        advice = "; indent with spaces" if "'\\t'" in str(error.problem) else ""
        raise ConfigError(f"{where}not valid YAML: {error.problem or error.context}{advice}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not valid YAML: {str(error).splitlines()[0]}") from None
    return None if node is None else _value(node)


def parse_scalar(text: str) -> bool | int | float | str | None:
    """What an unquoted scalar means in the core schema of YAML 1.2, section 10.3.2 of its specification.

    >>> [parse_scalar(text) for text in ("2e-5", "007", "true", "no", "", "1:30", "0x10")]
    [2e-05, 7, True, 'no', None, '1:30', 16]
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return float(text) if _FLOAT.fullmatch(text) else text


def describe(value: object) -> str:
    """A value as a message names it, short enough for one line."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return f'"{one_line(value)}"'
        case Mapping():
            return "a mapping"
        case list():
            items = ", ".join(map(describe, value)).replace("the number ", "")
            return f"[{items}]" if 0 < len(items) <= 60 else "a list" if value else "an empty list"
        case _:
            return f"the number {value}"[:80]


def one_line(text: str) -> str:
    """Text of a user as a message quotes it: short, and without line breaks or control characters.

    >>> one_line("a\\n\\x1b[31mb")
    'a [31mb'
    """
    clean = " ".join("".join(char if char.isprintable() else " " for char in text[:200]).split())
    return clean if len(clean) <= 60 else clean[:57] + "..."


def _refuse_tricks(text: str) -> None:
    """Raise for what a configuration does not need and an attacker does."""
    depth, documents, values = 0, 0, 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        values += isinstance(event, yaml.NodeEvent)
        problem = None
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            problem = "anchors (&) and aliases (*) are not supported: write the value out, or put quotes around text"
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            problem = (
                f"tags ({one_line(event.tag)}) are not supported: leave it out, or put quotes around text"
            )
        elif depth > MAX_DEPTH:
            problem = f"nested more than {MAX_DEPTH} deep"
        elif values > MAX_VALUES:
            problem = f"expected a configuration, found more than {MAX_VALUES:,} values"
        elif documents > 1:
            problem = "a second document begins here: expected one"
        if problem:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise ConfigError(f"line {line}: {problem}")


def _value(node: Node) -> Any:
    if isinstance(node, ScalarNode):
        return parse_scalar(node.value) if node.style is None else node.value
    if not isinstance(node, MappingNode):
        return [_value(item) for item in node.value]
    result: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode):
            raise ConfigError(f"line {line}: expected text as a key, found a list or mapping")
        key = str(key_node.value)
        if key in result:
            raise ConfigError(f'line {line}: key "{one_line(key)}" was given before, on line {lines[key]}')
        result[key], lines[key] = _value(value_node), line
    return result
