"""What of a configuration others may read: where files lie on the machine of its author is nobody's business."""

import re
from pathlib import PurePath, PureWindowsPath
from typing import Any

from sbert_train.config.loader import dump_tree, written_tree
from sbert_train.config.schema import RunConfig

_REFERENCES = ("teacher", "guide")
_OF_A_MACHINE = re.compile(r"[/\\~]|\.\.([/\\]|$)|[A-Za-z]:[/\\]")


def public_config(config: RunConfig) -> str:
    """The configuration as YAML, `${NAME}` as it is written, and paths as `public_place` has them.

    It repeats the run where relative paths name the same files; those that were cut have to be told again.
    """
    tree = written_tree(config)
    tree["output_dir"] = public_place(tree["output_dir"])
    tree["model"]["base"] = public_place(tree["model"]["base"])
    for one in (*tree["data"]["train"], *tree["data"]["eval"]):
        one["source"] = public_place(one["source"])
    for objective in (tree["objective"], *(one["objective"] for one in tree["data"]["train"])):
        for name in _REFERENCES:
            if objective and objective.get(name):
                objective[name] = public_place(objective[name])
    tree["train"] = _public(tree["train"])
    return dump_tree(tree)


def public_place(text: str) -> str:
    r"""A path, Hub id or other source without the folders of a machine: of an absolute path, of one below the home
    folder and of one that leads upwards, the last part.

    >>> [public_place(text) for text in ("/home/me/acme/pairs.csv", "~/base", "../nli/*.csv", "C:\\data\\a.csv")]
    ['pairs.csv', 'base', '*.csv', 'a.csv']
    >>> [public_place(text) for text in ("data/pairs.csv", "org/name", "package://module/model", "${DATA}/a.csv")]
    ['data/pairs.csv', 'org/name', 'package://module/model', '${DATA}/a.csv']
    """
    if not _OF_A_MACHINE.match(text):
        return text
    path = PureWindowsPath(text) if "\\" in text else PurePath(text)
    return path.name.removeprefix("..") or "here"


def _public(value: Any) -> Any:
    """A tree whose texts that are paths of a machine are cut."""
    if isinstance(value, dict):
        return {key: _public(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_public(one) for one in value]
    return public_place(value) if isinstance(value, str) else value
