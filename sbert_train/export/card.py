"""The README.md of a saved model: what it is, how to use it, what was measured, what it was trained on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from huggingface_hub import EvalResult, ModelCardData

from sbert_train import __version__
from sbert_train.evaluation.bootstrap import LEVEL
from sbert_train.evaluation.compare import TaskComparison
from sbert_train.export.losses import loss_names
from sbert_train.export.markdown import code, fenced, plain
from sbert_train.export.usage import (
    PLACE,
    brings_code,
    trusting,
    with_sentence_transformers,
    with_transformers,
)
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import TwoHeads
from sbert_train.objectives.registry import ObjectiveSpec

TAGS = ["sentence-transformers", "feature-extraction", "sentence-similarity"]

HUB_TASKS = {
    "sts": "semantic-similarity",
    "retrieval": "information-retrieval",
    "pair_classification": "binary-classification",
    "triplet": "triplet",
    "reranking": "reranking",
    "nli": "label-accuracy",
    "clustering": "clustering",
}
"""Kind of our task -> the name of it that sentence-transformers gives the Hub."""


@dataclass(frozen=True)
class HubSet:
    """A data set of the Hub, as a whole."""

    repository: str
    subset: str | None
    split: str


@dataclass(frozen=True)
class CardFacts:
    """What a card tells of a model's making.

    Attributes:
        name: what the model is called.
        base: what it was fine-tuned from, as the configuration has it.
        base_hub_id: the Hub repository of `base`, if it is one.
        results: the eval sets, each with the models `before` and `after`.
        data: one line for each training set: its name, its rows, and what became of them.
        config: the resolved configuration, in YAML.
        objectives: what it was trained towards.
        rows: of all training sets together; None where they are not told.
        datasets: the Hub repositories of training sets.
        evaluated_on: eval set -> what it is on the Hub, where it is all of a split there.
        notes: what a reader of the results should know, a sentence each.
    """

    name: str
    base: str
    base_hub_id: str | None
    results: Sequence[TaskComparison]
    data: Sequence[str]
    config: str
    objectives: Sequence[ObjectiveSpec] = ()
    rows: int | None = None
    datasets: Sequence[str] = ()
    evaluated_on: Mapping[str, HubSet] = field(default_factory=dict)
    notes: Sequence[str] = ()


def model_card(encoder: SentenceEncoder, facts: CardFacts) -> str:
    """The card of a tuned model, with metadata that the Hub reads."""
    sections = [
        f"---\n{_metadata(facts).to_yaml()}\n---",
        f"# {plain(facts.name)}",
        f"Maps a text to a vector of {encoder.dimension} dimensions, so that texts of like meaning are near each "
        f"other. Fine-tuned from {code(facts.base)} with sbert-train {__version__}.",
        "## Use",
        _usage(encoder),
        *(["## Results", _results(facts)] if facts.results else []),
        "## Training",
        "\n".join([*(f"- {plain(line)}" for line in facts.data), *map(_objective, facts.objectives)]),
        "The configuration that repeats it, without the folders of files that lay elsewhere on the disk:",
        fenced(facts.config.strip(), "yaml"),
    ]
    return "\n\n".join(sections) + "\n"


def _metadata(facts: CardFacts) -> ModelCardData:
    results = [
        _result(facts, task, metric, estimate.value)
        for task in facts.results
        for metric, estimate in task.scores["after"].items()
        if isfinite(estimate.value)
    ]
    return ModelCardData(
        tags=[*TAGS, *_training_tags(facts)],
        pipeline_tag="sentence-similarity",
        library_name="sentence-transformers",
        base_model=facts.base_hub_id,
        datasets=list(dict.fromkeys(facts.datasets)) or None,
        model_name=facts.name if results else None,  # the name of what has these results
        eval_results=results or None,
    )


def _result(facts: CardFacts, task: TaskComparison, metric: str, value: float) -> EvalResult:
    found = facts.evaluated_on.get(task.task)
    return EvalResult(
        task_type=HUB_TASKS[task.kind],
        dataset_type="unknown" if found is None else found.repository,
        dataset_name=task.task,
        dataset_config=None if found is None else found.subset,
        dataset_split=None if found is None else found.split,
        metric_type=metric,
        metric_value=round(value, 4),
    )


def _training_tags(facts: CardFacts) -> list[str]:
    """As sentence-transformers writes them, so that who filters by them finds this model, too."""
    losses = dict.fromkeys(name for spec in facts.objectives for name in loss_names(spec))
    size = [] if facts.rows is None else [f"dataset_size:{facts.rows}"]
    return [*size, *(f"loss:{name}" for name in losses)]


def _objective(spec: ObjectiveSpec) -> str:
    theirs = " in ".join(code(name) for name in reversed(loss_names(spec)))
    return f"- objective {code(spec.name)}" + (f": {theirs} of sentence-transformers" if theirs else "")


def _usage(encoder: SentenceEncoder) -> str:
    two = isinstance(encoder.head, TwoHeads)
    arguments = 'texts, role="query"' if two else "texts"
    ours = f'SentenceEncoder.load("{PLACE}"{trusting(encoder)}).encode({arguments})'
    plainly = with_transformers(encoder)
    parts = [
        fenced(with_sentence_transformers(encoder), "python"),
        *(["With transformers alone:", fenced(plainly, "python")] if plainly else []),
        f"Or with sbert-train: `from sbert_train import SentenceEncoder`, then `{ours}`.",
    ]
    if brings_code(encoder):
        parts.append("Python code in its folder runs when it is loaded: read that first.")
    if two:
        parts.append(
            "Queries and documents have a head each, so a text has two vectors: say which you want, here with "
            '`role="query"` or `role="document"`.'
        )
    prompts = [
        f"{code(name)} puts {code(json.dumps(before, ensure_ascii=False))}"
        for name, before in encoder.prompts.items()
        if before
    ]
    if prompts:
        parts.append(
            f"Prompts, by their name (`prompt_name=` or, with sbert-train, `role=`): {'; '.join(prompts)}."
        )
    length = (
        "It reads texts of any length"
        if encoder.max_length is None
        else f"It reads {encoder.max_length} tokens of a text"
    )
    scaled = "are scaled to length 1" if encoder.normalize else "are not scaled to length 1"
    parts.append(f"{length}, pools by `{encoder.pooling}`, and its vectors {scaled}.")
    return "\n\n".join(parts)


def _results(facts: CardFacts) -> str:
    tasks = facts.results
    rows = ["| eval set | metric | before | after | change |", "|---|---|---:|---:|---:|"]
    for task in tasks:
        metric = task.primary_metric
        before, after = (task.scores[model][metric] for model in ("before", "after"))
        change = task.differences["after"][metric]
        rows.append(
            f"| {plain(task.task)} ({task.n:,} {task.unit}) | {metric} | {before.value:.4f} | {after.value:.4f} "
            f"| {change.value:+.4f} ({change.low:+.4f} to {change.high:+.4f}) |"
        )
    nli = any(task.kind == "nli" for task in tasks)
    baseline = "the base model" + (", judged by the classifier as training began" if nli else "")
    note = (
        f"Before is {baseline}. In brackets: the {LEVEL:.0%} interval of the paired difference, by bootstrap."
    )
    return "\n".join(rows) + "\n\n" + "\n".join([note, *(f"\n- {plain(one)}" for one in facts.notes)])
