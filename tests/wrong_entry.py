"""One wrong input: what lies in the working directory, what is typed, and what must be said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Change = Callable[[Path], None]
"""Damages the copy of a tiny model in this folder."""

GOOD_FILES: Mapping[str, str] = {
    "pairs.csv": "anchor,positive\nthe cat sat,a cat sat\nthe dog ran,a dog ran\nthe bird ate,a bird ate\n"
    "the fish saw,a fish saw\n",
    "scored.csv": "sentence1,sentence2,score\nthe cat sat,a cat sat,5\nthe dog ran,a cat sat,1\na man,a man,4\n",
    "labelled.csv": "sentence1,sentence2,label\nthe cat,a cat,1\nthe dog,a tree,0\na man,the man,1\na sun,a mat,0\n",
}
"""What lies beside the files of every entry."""

BLOCKS: Mapping[str, str] = {
    "output_dir": "run",
    "model": "{base: model}",
    "data": "{train: [{source: pairs.csv}]}",
    "objective": "{name: in_batch_negatives}",
    "train": "{max_steps: 1, per_device_train_batch_size: 2}",
    "engine": "{precision: fp32}",
}
"""The run that every entry changes a part of; it goes through as it is."""


@dataclass(frozen=True)
class Wrong:
    """A wrong input.

    Attributes:
        name: what is wrong, in words; the name of its test.
        words: what the message must hold; with `lines` > 1 all lines together.
        files: name -> content, beside GOOD_FILES and `run.yaml`.
        config: what `run.yaml` holds; None for none.
        arguments: of `sbert-train`.
        change: damages the folder `model`.
        lines: how many things are wrong, each of which has a line.
        environ: variables of the environment, whose values must not be told.
    """

    name: str
    words: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    config: str | bytes | None = None
    arguments: tuple[str, ...] = ("fit", "--config", "run.yaml")
    change: Change | None = None
    lines: int = 1
    environ: Mapping[str, str] = field(default_factory=dict)


def run_with(**blocks: str | None) -> str:
    """The run with other blocks, each in YAML; None leaves one out."""
    return "".join(f"{key}: {text}\n" for key, text in {**BLOCKS, **blocks}.items() if text is not None)


def block(name: str, key: str, text: str, *words: str) -> Wrong:
    """A run with another block."""
    return Wrong(name, words, config=run_with(**{key: text}))


def a_set(
    name: str,
    file: str,
    content: str | bytes,
    *words: str,
    more: str = "",
    objective: str = "in_batch_negatives",
    lines: int = 1,
) -> Wrong:
    """A run that trains on a file."""
    train = f"{{source: {file}{', ' + more if more else ''}}}"
    config = run_with(data=f"{{train: [{train}]}}", objective=f"{{name: {objective}}}")
    return Wrong(name, words, {file: content}, config, lines=lines)


def scores(name: str, rows: str, *words: str, more: str = "score_range: [0, 5]", lines: int = 1) -> Wrong:
    """A run that trains on scored pairs."""
    content = "sentence1,sentence2,score\nthe cat,a cat,5\n" + rows
    return a_set(name, "bad.csv", content, *words, more=more, objective="cosine_regression", lines=lines)


def labels(name: str, rows: str, *words: str, more: str = "") -> Wrong:
    """A run that trains on labelled pairs."""
    content = "sentence1,sentence2,label\nthe cat,a cat,1\n" + rows
    return a_set(name, "bad.csv", content, *words, more=more, objective="softmax")


def a_model(name: str, change: Change, *words: str) -> Wrong:
    """A run from a model that is damaged."""
    return Wrong(name, words, config=run_with(), change=change)


def command(name: str, line: str, *words: str, files: Mapping[str, str] | None = None) -> Wrong:
    """Another command, in a folder where the good run lies as `run.yaml`."""
    return Wrong(name, words, files or {}, run_with(), tuple(line.split()))
