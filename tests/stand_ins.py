"""What stands in for the Hub's models and data sets when a recipe runs in a test: tiny ones, in the shape of the real.

The tables say what the recipes may name. The columns, splits and subsets are those of the real sets, as their cards
on the Hub tell them, so a recipe that asks for another fails here first.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sbert_train.config import EvalSet, RunConfig, TrainSet
from sbert_train.data.locate import HubId, classify
from tests.tiny import make_backbone, make_encoder, make_tokenizer
from tests.training.runs import sentences, write_csv

ROWS = 40


@dataclass(frozen=True)
class DataStandIn:
    """A data set of the Hub.

    Attributes:
        columns: column -> a key of VALUES.
        splits: those that it has.
    """

    columns: Mapping[str, str]
    splits: tuple[str, ...] = ("train",)


VALUES: Mapping[str, Callable[[int, tuple[str, str, str, float]], Any]] = {
    "anchor": lambda _, row: row[0],
    "positive": lambda _, row: row[1],
    "negative": lambda _, row: row[2],
    "score": lambda _, row: row[3] / 5,
    "class": lambda i, _: i % 3,
    "class or -1": lambda i, _: (0, 0, 1, 2, -1)[i % 5],
    "yes or no": lambda i, _: i % 2,
}
"""What a column holds -> its value, from the number of a row and the row of `sentences`."""


def pairs(anchor: str, positive: str) -> DataStandIn:
    """A set of pairs, with a training split only, as most of the organisation sentence-transformers are."""
    return DataStandIn({anchor: "anchor", positive: "positive"})


_TRIPLETS = {"anchor": "anchor", "positive": "positive", "negative": "negative"}
_NLI = {"premise": "anchor", "hypothesis": "positive"}
_OURS = "sentence-transformers"

DATA_SETS: Mapping[tuple[str, str | None], DataStandIn] = {
    ("stanfordnlp/snli", None): DataStandIn(_NLI | {"label": "class or -1"}, ("train", "validation", "test")),
    ("nyu-mll/multi_nli", None): DataStandIn(
        _NLI | {"label": "class or -1"}, ("train", "validation_matched", "validation_mismatched")
    ),
    (f"{_OURS}/stsb", None): DataStandIn(
        {"sentence1": "anchor", "sentence2": "positive", "score": "score"}, ("train", "validation", "test")
    ),
    (f"{_OURS}/all-nli", "pair-class"): DataStandIn(_NLI | {"label": "class"}, ("train", "dev", "test")),
    (f"{_OURS}/all-nli", "triplet"): DataStandIn(_TRIPLETS, ("train", "dev", "test")),
    (f"{_OURS}/nli-for-simcse", "triplet"): DataStandIn(_TRIPLETS),
    (f"{_OURS}/wikipedia-sections", "triplet"): DataStandIn(_TRIPLETS, ("train", "validation", "test")),
    (f"{_OURS}/wikipedia-en-sentences", None): DataStandIn({"sentence": "negative"}),
    (f"{_OURS}/quora-duplicates", "pair-class"): DataStandIn(
        {"sentence1": "anchor", "sentence2": "positive", "label": "yes or no"}
    ),
    (f"{_OURS}/quora-duplicates", "triplet"): DataStandIn(_TRIPLETS),
    (f"{_OURS}/msmarco-msmarco-distilbert-base-tas-b", "triplet"): DataStandIn(
        {"query": "anchor", "positive": "positive", "negative": "negative"}
    ),
    (f"{_OURS}/specter", "triplet"): DataStandIn(_TRIPLETS),
    (f"{_OURS}/gooaq", None): pairs("question", "answer"),
    (f"{_OURS}/amazon-qa", None): pairs("query", "answer"),
    (f"{_OURS}/yahoo-answers", "title-answer-pair"): pairs("title", "answer"),
    (f"{_OURS}/yahoo-answers", "question-answer-pair"): pairs("question", "answer"),
    (f"{_OURS}/yahoo-answers", "title-question-pair"): pairs("title", "questions"),
    (f"{_OURS}/eli5", None): pairs("question", "answer"),
    (f"{_OURS}/natural-questions", None): pairs("query", "answer"),
    (f"{_OURS}/squad", None): pairs("question", "answer"),
    (f"{_OURS}/trivia-qa", None): pairs("query", "answer"),
    (f"{_OURS}/paq", None): pairs("query", "answer"),
    (f"{_OURS}/s2orc", "title-citation-pair"): pairs("title", "citation"),
    (f"{_OURS}/s2orc", "title-abstract-pair"): pairs("title", "abstract"),
    (f"{_OURS}/sentence-compression", None): pairs("text", "simplified"),
    (f"{_OURS}/wikihow", None): pairs("text", "summary"),
    (f"{_OURS}/altlex", None): pairs("text", "simplified"),
    (f"{_OURS}/simple-wiki", None): pairs("text", "simplified"),
    (f"{_OURS}/stackexchange-duplicates", "title-title-pair"): pairs("title1", "title2"),
    (f"{_OURS}/stackexchange-duplicates", "body-body-pair"): pairs("body1", "body2"),
    (f"{_OURS}/stackexchange-duplicates", "post-post-pair"): pairs("post1", "post2"),
    (f"{_OURS}/coco-captions", None): pairs("caption1", "caption2"),
    (f"{_OURS}/flickr30k-captions", None): pairs("caption1", "caption2"),
    (f"{_OURS}/codesearchnet", None): pairs("comment", "code"),
}
"""(Hub id, subset) -> what stands in for it."""

PLAIN_MODELS: Mapping[str, str] = {
    "distilbert/distilbert-base-uncased": "distilbert",
    "google-bert/bert-base-uncased": "bert",
    "microsoft/mpnet-base": "mpnet",
    "nreimers/MiniLM-L6-H384-uncased": "bert",
}
"""Hub id -> the architecture of a backbone and its tokenizer."""

SENTENCE_MODELS: Mapping[str, dict[str, Any]] = {
    f"{_OURS}/all-MiniLM-L6-v2": {"normalize": True},
    f"{_OURS}/paraphrase-MiniLM-L3-v2": {},
    f"{_OURS}/all-mpnet-base-v2": {"architecture": "mpnet", "normalize": True, "seed": 1},
}
"""Hub id -> what makes it, as a sentence encoder's folder."""

LOCAL_MODELS = ("runs/sbert_softmax_nli/model",)
"""Folders of other recipes' runs."""

FILES: Mapping[str, tuple[str, ...]] = {
    "pairs.csv": ("anchor", "positive"),
    "qa.csv": ("question", "answer"),
    "qa_dev.csv": ("question", "answer"),
}
"""Files that a recipe leaves to its user -> the columns of their pairs."""


def missing(config: RunConfig) -> list[str]:
    """What a configuration names that the tables do not have, in words."""
    problems = [problem for one in sets_of(config) for problem in _missing_of(one)]
    for model in models_of(config):
        local = model.startswith("package://") or model in LOCAL_MODELS
        if not local and model not in PLAIN_MODELS and model not in SENTENCE_MODELS:
            problems.append(f"the model {model} has no stand-in; add it to tests/stand_ins.py")
    return problems


def sets_of(config: RunConfig) -> list[TrainSet | EvalSet]:
    """All sets, those to train on first."""
    return [*config.data.train, *config.data.eval]


def models_of(config: RunConfig) -> list[str]:
    """The base, and the teachers and guides of the objectives."""
    others = (getattr(one, name, None) for one in config.objectives for name in ("teacher", "guide"))
    return [config.model.base, *(other for other in others if other not in (None, "self"))]


def _missing_of(one: TrainSet | EvalSet) -> Iterable[str]:
    if not isinstance(classify(one.source), HubId):
        if not one.source.startswith("builtin:") and one.source not in FILES:
            yield f"the file {one.source} has no stand-in; add it to tests/stand_ins.py"
        return
    found = DATA_SETS.get((one.source, one.subset))
    if found is None:
        yield f"the data set {one.source} (subset {one.subset}) has no stand-in; add it to tests/stand_ins.py"
        return
    mapped = [(names,) if isinstance(names, str) else names or () for names in one.columns.values()]
    for column in (*chain.from_iterable(mapped), *one.where):
        if column not in found.columns:
            yield f"the data set {one.source} has no column {column!r}; it has {', '.join(found.columns)}"
    if one.split.partition("[")[0] not in found.splits:
        yield f"the data set {one.source} has no split {one.split!r}; it has {', '.join(found.splits)}"


def write_stand_ins(config: RunConfig, hub: Path, working: Path) -> None:
    """Put what a configuration names on the Hub's disk, and its files and folders in the working directory.

    Raises:
        LookupError: it names something that the tables do not have.
    """
    if problems := missing(config):
        raise LookupError("; ".join(problems))
    for one in sets_of(config):
        if isinstance(classify(one.source), HubId):
            _write_data_set(one.source, hub / "datasets" / one.source)
        elif one.source in FILES:
            write_csv(working / one.source, FILES[one.source], [row[:2] for row in sentences(ROWS)])
    for model in models_of(config):
        if model in PLAIN_MODELS:
            make_backbone(PLAIN_MODELS[model]).save_pretrained(hub / "models" / model)
            make_tokenizer(max_length=512).save_pretrained(hub / "models" / model)
        elif model in SENTENCE_MODELS:
            make_encoder(**SENTENCE_MODELS[model]).save(hub / "models" / model)
        elif model in LOCAL_MODELS:
            make_encoder().save(working / model)


def _write_data_set(repo: str, folder: Path) -> None:
    """All subsets of a repository, laid out and declared as on the Hub."""
    if folder.exists():
        return
    card = ["---", "configs:"]
    for name, subset in DATA_SETS:
        if name == repo:
            stand_in = DATA_SETS[name, subset]
            below = folder / (subset or "data")
            below.mkdir(parents=True)
            card += [f"- config_name: {subset or 'default'}", "  data_files:"]
            for split in stand_in.splits:
                pq.write_table(_rows(stand_in), below / f"{split}-00000-of-00001.parquet")
                card += [f"  - split: {split}", f"    path: {below.name}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]), encoding="utf-8")


def _rows(stand_in: DataStandIn) -> pa.Table:
    rows = sentences(ROWS)
    return pa.table(
        {
            column: [VALUES[kind](i, row) for i, row in enumerate(rows)]
            for column, kind in stand_in.columns.items()
        }
    )
