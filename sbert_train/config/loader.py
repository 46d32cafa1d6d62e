"""A YAML file and the overrides of a command -> RunConfig, and back; every wrong thing is told at once."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from sbert_train.config.blocks import TreePath
from sbert_train.config.complaints import complaints
from sbert_train.config.reader import describe, one_line, parse_scalar, parse_yaml, read_yaml_file
from sbert_train.config.schema import RunConfig, name_of_source
from sbert_train.errors import ConfigError

_LISTS: tuple[TreePath, ...] = (("data", "train"), ("data", "eval"))
_PUBLIC_KEYS = frozenset(
    ("train", key)
    for key in ("run_name", "project", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id")
)
_PUBLIC = (
    "others read it in the model, its card, a report or a tracker: expected the text itself, not ${NAME}"
)
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class WrongValues(ConfigError):
    """Values of a configuration are wrong.

    Attributes:
        wrong: their paths.
        rest: the configuration without them, so that what else is wrong can be told with them; None where that is none.
    """

    def __init__(self, message: str, wrong: Sequence[TreePath], rest: RunConfig | None) -> None:
        super().__init__(message)
        self.wrong = tuple(wrong)
        self.rest = rest


def load_config(
    path: str | Path, overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> RunConfig:
    """Read a run's configuration.

    Args:
        path: a YAML file. Relative paths in it are relative to the working directory, as on the command line.
        overrides: `key.path=value` each, the value in YAML; a list item by its index (`data.train.0.source=a.csv`).
            A later one wins.
        environ: where `${NAME}` in a value is looked up.

    Raises:
        WrongValues: one line for each thing that is wrong.
        ConfigError: the file cannot be read.
    """
    tree = read_yaml_file(Path(path))
    given, lines = {}, []
    for override in overrides:
        try:
            given[_override(tree, override)] = override
        except ConfigError as error:
            lines.append(f"{_named(override)}: {error}")
    unread = bool(lines)
    problems: list[tuple[TreePath, str]] = []
    written: dict[TreePath, str] = {}
    expanded = _expand(tree, (), environ, written, problems)
    problems += [(at, _PUBLIC) for at in written if _is_public(at)]
    _name_sets(expanded, written)
    try:
        config = RunConfig.model_validate(expanded)
    except ValidationError as error:
        already = {at for at, _ in problems}
        problems += [(at, text) for at, text in complaints(error, tree) if at not in already]
    lines += [_line(at, text, str(path), given) for at, text in problems]
    if lines:
        wrong = [at for at, _ in problems]
        rest = None
        if not unread:  # what an override should have replaced is not meant
            with suppress(ValidationError):
                rest = _remembering(RunConfig.model_validate(_without(expanded, (), wrong)), written, environ)
        raise WrongValues("\n".join(lines), wrong, rest)
    return _remembering(config, written, environ)


def _remembering(config: RunConfig, written: dict[TreePath, str], environ: Mapping[str, str]) -> RunConfig:
    """A configuration that knows where `${NAME}` stood in its file, and for what."""
    names = {name for text in written.values() for name in _PLACEHOLDER.findall(text)}
    config._written = written
    config._environment = {name: environ[name] for name in names if name in environ}
    return config


def dump_config(config: RunConfig) -> str:
    """The configuration as YAML, every key with its value; `${NAME}` stands where it stood in the file.

    `load_config` reads it back to an equal configuration.
    """
    return dump_tree(written_tree(config))


def written_tree(config: RunConfig) -> dict[str, Any]:
    """The configuration as plain values, every key with its value; `${NAME}` stands where it stood in the file."""
    tree = config.model_dump(mode="json")
    for at, text in config._written.items():
        holder: Any = tree
        for part in at[:-1]:
            holder = holder[part]
        holder[at[-1]] = text
    return tree


def dump_tree(tree: dict[str, Any]) -> str:
    """Plain values as YAML that any reader takes for the same."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.1 or YAML 1.2 would take for something else, so that any reader agrees."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        misread = parse_scalar(text) != text
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if misread else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def _override(tree: dict[str, Any], override: str) -> TreePath:
    """Set one value of the tree, in place; the path that it has."""
    dotted, sign, text = override.partition("=")
    keys = dotted.split(".")
    if not sign or not all(keys):
        raise ConfigError("expected key.path=value, such as train.learning_rate=2e-5")
    value = _override_value(text)
    holder: Any = tree
    at: TreePath = ()
    for key in keys:
        if at:  # go down into what stands at `at`; where there is nothing, it begins
            child = holder[at[-1]]
            if child is None:
                child = holder[at[-1]] = [] if at in _LISTS else {}
            holder = child
        at = (*at, _place_in(holder, key, at))
    holder[at[-1]] = value
    return at


def _place_in(holder: Any, key: str, at: TreePath) -> str | int:
    """The key or index that `key` means in what stands at `at`; makes room for it."""
    if isinstance(holder, dict):
        holder.setdefault(key, None)
        return key
    if not isinstance(holder, list):
        raise ConfigError(f'{_dotted(at)} is {describe(holder)}, which has no "{one_line(key)}"')
    if not re.fullmatch("[0-9]{1,6}", key) or int(key) > len(holder):
        expected = f"a number from 0 to {len(holder)}" if holder else "0"
        raise ConfigError(f'{_dotted(at)} is a list: expected {expected}, found "{one_line(key)}"')
    if int(key) == len(holder):
        holder.append(None)
    return int(key)


def _override_value(text: str) -> Any:
    """YAML where the value is one scalar, `[a list]` or `{a: mapping}`; anything else is text as it stands.

    So `model.prompts.anchor=query: ` and `data.train.0.source=*.csv` need no second pair of quotes.
    """
    return parse_yaml(text) if text[:1] in ("[", "{", '"', "'") else parse_scalar(text)


def _expand(
    value: Any,
    at: TreePath,
    environ: Mapping[str, str],
    written: dict[TreePath, str],
    problems: list[tuple[TreePath, str]],
) -> Any:
    """A copy of the tree with every `${NAME}` replaced; fills `written` and `problems`."""
    if isinstance(value, dict):
        return {key: _expand(item, (*at, key), environ, written, problems) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, (*at, i), environ, written, problems) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    if "${" in _PLACEHOLDER.sub("", value):
        problems.append(
            (at, f"expected ${{NAME}}, the name of an environment variable, found {describe(value)}")
        )
    for name in dict.fromkeys(_PLACEHOLDER.findall(value)):
        if name not in environ:
            problems.append((at, f"the environment variable {name} is not set (${{{name}}} asks for it)"))
    written[at] = value
    expanded = _PLACEHOLDER.sub(lambda match: environ.get(match[1], match[0]), value)
    if not expanded:
        problems.append((at, f"expected text, but what {value} asks for is set and empty"))
    return expanded


def _without(value: Any, at: TreePath, wrong: Sequence[TreePath]) -> Any:
    """A copy of a tree without the keys at these paths; items of lists stay, so that the others keep their number."""
    if isinstance(value, dict):
        places = {key: (*at, key) for key in value}
        return {
            key: _without(value[key], place, wrong) for key, place in places.items() if place not in wrong
        }
    if isinstance(value, list):
        return [_without(item, (*at, i), wrong) for i, item in enumerate(value)]
    return value


def _is_public(at: TreePath) -> bool:
    """Whether others read the value at this path in what a run leaves: a prompt, the name of a set or of a run."""
    return at[:2] == ("model", "prompts") or (at[:2] in _LISTS and at[3:] == ("name",)) or at in _PUBLIC_KEYS


def _name_sets(tree: Mapping[str, Any], written: Mapping[TreePath, str]) -> None:
    """Name each set whose source holds `${NAME}`, in place: by what is written, not by what the environment holds."""
    for at, source in written.items():
        if at[:2] in _LISTS and at[3:] == ("source",):
            _, block, number, _ = at
            tree["data"][block][number].setdefault("name", name_of_source(source))


def _line(at: TreePath, text: str, file: str, given: Mapping[TreePath, str]) -> str:
    """One problem as one line; it names the override that it came with, else the file."""
    near = (
        override for place, override in given.items() if place == at[: len(place)] or at == place[: len(at)]
    )
    override = next(near, None)
    source = file if override is None else _named(override)
    return f"{source}: {_dotted(at)}: {text}"


def _named(override: str) -> str:
    return f'override "{one_line(override)}"'


def _dotted(at: Iterable[str | int]) -> str:
    return ".".join(one_line(str(part)) for part in at)
