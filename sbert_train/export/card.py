"""The README.md of a saved model: what it is, how to use it, what was measured, what it was trained on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from huggingface_hub import EvalResult, ModelCardData

from sbert_train import __version__
from sbert_train.evaluation.bootstrap import LEVEL
from sbert_train.evaluation.compare import TaskComparison
from sbert_train.export.markdown import code, fenced, plain
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import TwoHeads

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

PLACE = "path/or/id/of/this/model"
"""What stands for the model in the card's code."""


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
    """

    name: str
    base: str
    base_hub_id: str | None
    results: Sequence[TaskComparison]
    data: Sequence[str]
    config: str


def model_card(encoder: SentenceEncoder, facts: CardFacts) -> str:
    """The card of a tuned model, with metadata that the Hub reads."""
    sections = [
        f"---\n{_metadata(facts).to_yaml()}\n---",
        f"# {plain(facts.name)}",
        f"Maps a text to a vector of {encoder.dimension} dimensions, so that texts of like meaning are near each "
        f"other. Fine-tuned from {code(facts.base)} with sbert-train {__version__}.",
        "## Use",
        _usage(encoder),
        *(["## Results", _results(facts.results)] if facts.results else []),
        "## Training",
        "\n".join(f"- {plain(line)}" for line in facts.data),
        "The configuration that repeats it:",
        fenced(facts.config.strip(), "yaml"),
    ]
    return "\n\n".join(sections) + "\n"


def _metadata(facts: CardFacts) -> ModelCardData:
    results = [
        EvalResult(
            task_type=HUB_TASKS[task.kind],
            dataset_type="unknown",
            dataset_name=task.task,
            metric_type=metric,
            metric_value=round(estimate.value, 4),
        )
        for task in facts.results
        for metric, estimate in task.scores["after"].items()
    ]
    return ModelCardData(
        tags=TAGS,
        pipeline_tag="sentence-similarity",
        library_name="sentence-transformers",
        base_model=facts.base_hub_id,
        model_name=facts.name,
        eval_results=results or None,
    )


_ONE_HEAD = """\
embeddings = model.encode(["A cat sleeps on the mat.", "The mat has a sleeping cat on it."])
print(model.similarity(embeddings, embeddings))"""

_TWO_HEADS = """\
queries = model.encode_query(["Where does the cat sleep?"])
documents = model.encode_document(["A cat sleeps on the mat.", "The dog sleeps in the garden."])
print(model.similarity(queries, documents))"""


def _usage(encoder: SentenceEncoder) -> str:
    two = isinstance(encoder.head, TwoHeads)
    arguments = 'texts, role="query"' if two else "texts"
    ours = f'SentenceEncoder.load("{PLACE}").encode({arguments})'
    text = f"""\
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{PLACE}")
{_TWO_HEADS if two else _ONE_HEAD}
```

Or without sentence-transformers: `from sbert_train import SentenceEncoder`, then `{ours}`."""
    if two:
        text += (
            "\n\nQueries and documents have a head each, so a text has two vectors: say which you want, here with "
            '`role="query"` or `role="document"`.'
        )
    prompts = [
        f"{code(name)} puts {code(json.dumps(before, ensure_ascii=False))}"
        for name, before in encoder.prompts.items()
        if before
    ]
    if prompts:
        text += f"\n\nPrompts, by their name (`prompt_name=` or, with sbert-train, `role=`): {'; '.join(prompts)}."
    length = (
        "It reads texts of any length"
        if encoder.max_length is None
        else f"It reads {encoder.max_length} tokens of a text"
    )
    scaled = "are scaled to length 1" if encoder.normalize else "are not scaled to length 1"
    return f"{text}\n\n{length}, pools by `{encoder.pooling}`, and its vectors {scaled}."


def _results(tasks: Sequence[TaskComparison]) -> str:
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
    return "\n".join(rows) + f"\n\n{note}"
