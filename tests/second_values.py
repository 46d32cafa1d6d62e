"""For every field of the configuration a second value, what it needs around it, and where the difference shows.

`{folder}` in a text is the folder with the files that `write_files` makes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.config_leaves import OBJECTIVES, leaves
from tests.tiny import make_encoder
from tests.training.objective_runs import write_margins, write_nli
from tests.training.runs import sentences, write_csv, write_scored, write_triplets

Where = Literal["losses", "model", "metrics", "data", "plan", "folder"]


@dataclass(frozen=True)
class Second:
    """Another value of a field.

    Attributes:
        value: the value.
        around: dotted path -> value, for both runs; an objective here is one of the run.
        seen: what must differ.
        refused: which of the two runs must be refused, if one must; its message names the field.
    """

    value: Any
    around: Mapping[str, Any] = field(default_factory=dict)
    seen: Where = "losses"
    refused: Literal["base", "changed"] | None = None


def write_files(folder: Path) -> None:
    """The data and models of all runs."""
    write_triplets(folder)
    write_triplets(folder, seed=5)
    write_scored(folder)
    write_scored(folder, seed=101)
    write_nli(folder)
    write_margins(folder)
    make_encoder(seed=3).save(folder / "other")
    rows = sentences(48, seed=11)
    parted = [(*row[:3], "xy"[i % 2]) for i, row in enumerate(rows)]
    write_csv(folder / "parted.csv", ("anchor", "positive", "negative", "part"), parted)
    twice = [(*rows[i // 2][:2], row[2]) for i, row in enumerate(rows)]
    write_csv(folder / "twice.csv", ("anchor", "positive", "negative"), twice)
    words = [(one, other, ["no", "yes"][i % 2]) for i, (one, other, _, _) in enumerate(rows)]
    write_csv(folder / "words.csv", ("sentence1", "sentence2", "label"), words)
    both = [
        (one, other, score, 5 - i % 3, i % 2, "xy"[i % 2]) for i, (one, other, _, score) in enumerate(rows)
    ]
    header = ("sentence1", "sentence2", "score", "other", "label", "part")
    write_csv(folder / "both.csv", header, both)
    wrong: dict[str, tuple[int, Any]] = {
        "empty_text": (0, " "),
        "unlabelled": (4, -1),
        "wrong_score": (2, "none"),
        "score_out_of_range": (2, 7),
        "wrong_label": (4, 0.5),
    }
    for kind, (column, value) in wrong.items():
        one = [list(row) for row in both]
        one[0][column] = value
        write_csv(folder / f"{kind}.csv", header, [tuple(row) for row in one])
    objects = [dict(zip(header, row, strict=True)) for row in both]
    objects[0]["sentence1"] = 7
    (folder / "wrong_text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in objects))
    write_code(folder / "code")


def write_code(folder: Path) -> None:
    """A model whose folder brings its own code."""
    make_encoder(seed=4).save(folder)
    settings = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "mine.MineConfig", "AutoModel": "mine.MineModel"}
    settings |= {"model_type": "mine", "architectures": ["MineModel"], "auto_map": own}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "mine.py").write_text(
        "from transformers import BertConfig, BertModel\n\n\n"
        "class MineConfig(BertConfig):\n    model_type = 'mine'\n\n\n"
        "class MineModel(BertModel):\n    config_class = MineConfig\n"
    )


HEAD = {"model.head": {"dim": 8}}
LORA: dict[str, Any] = {"model.lora": {}}
BUILTIN = "builtin:contrast"
TWO = {
    "data.train": [
        {"source": "{folder}/triplets0.csv", "weight": 1},
        {"source": "{folder}/triplets5.csv", "limit": 24},
    ],
    "train.max_steps": 4,
}
SCORED: dict[str, Any] = {
    "objective": {"name": "cosine_regression"},
    "data.train.source": "{folder}/both.csv",
    "data.train.columns": {"label": None},
}
MODEL = {
    "output_dir": Second("other", seen="folder"),
    "seed": Second(7),
    "model.base": Second("{folder}/other"),
    "model.revision": Second("main", refused="changed"),
    "model.trust_remote_code": Second(True, {"model.base": "{folder}/code"}, refused="base"),
    "model.pooling": Second("cls"),
    "model.max_length": Second(5),
    "model.head.dim": Second(6, HEAD),
    "model.head.activation": Second("relu", HEAD),
    "model.head.dropout": Second(0.5, HEAD),
    "model.head.layers": Second(2, HEAD),
    "model.head.shared": Second(False, HEAD),
    "model.normalize": Second(True, seen="model"),
    "model.freeze": Second("embeddings"),
    "model.lora.r": Second(4, LORA),
    "model.lora.alpha": Second(640, LORA),
    "model.lora.dropout": Second(0.5, LORA),
    "model.lora.target_modules": Second(["query"], LORA),
    "model.prompts": Second({"anchor": "the "}),
}

TRAIN_SET = {
    "source": Second("{folder}/triplets5.csv"),
    "name": Second("other", seen="data"),
    "subset": Second("en", refused="changed"),
    "columns": Second({"negative": None}),
    "where": Second({"part": "x"}, {"data.train.source": "{folder}/parted.csv"}, seen="data"),
    "score_range": Second([0, 10], {**SCORED, "data.train.score_range": [0, 5]}),
    "limit": Second(24, seen="data"),
    "labels": Second(
        ["no", "yes"],
        {"objective": {"name": "softmax"}, "data.train.source": "{folder}/words.csv"},
        refused="base",
    ),
    "split": Second(
        "test",
        {"objective": {"name": "cosent"}, "data.train.source": BUILTIN}
        | {"data.train.split": "validation", "data.train.limit": 48},
    ),
    "weight": Second(50.0, {**TWO, "data.mixing": {"strategy": "weighted"}}),
    "objective": Second({"name": "triplet"}, TWO),
}

SCORED_EVAL = {"data.eval.source": "{folder}/both.csv", "data.eval.columns": {"label": None}}

EVAL_SET = {
    "source": Second("{folder}/scored101.csv", seen="metrics"),
    "name": Second("other", seen="metrics"),
    "subset": Second("en", refused="changed"),
    "columns": Second({"score": "other"}, {"data.eval.source": "{folder}/both.csv"}, seen="metrics"),
    "where": Second({"part": "x"}, SCORED_EVAL, seen="metrics"),
    "score_range": Second([0, 4], SCORED_EVAL, refused="changed"),
    "limit": Second(12, seen="metrics"),
    "labels": Second(
        ["no", "yes"],
        {"data.eval.source": "{folder}/words.csv", "data.eval.task": "pair_classification"}
        | {"data.eval.score_range": None},
        refused="base",
    ),
    "task": Second(
        "pair_classification",
        {"data.eval.source": "{folder}/both.csv", "data.eval.score_range": [0, 5]},
        seen="metrics",
    ),
    "split": Second(
        "test",
        {"data.eval.source": BUILTIN, "data.eval.split": "validation", "data.eval.limit": 24}
        | {"data.eval.score_range": None},
        seen="metrics",
    ),
}

MIXING_AND_ENGINE = {
    "data.mixing.strategy": Second("round_robin", TWO),
    "data.mixing.datasets_per_batch": Second(2, TWO),
    "data.no_duplicates": Second(False, {"data.train.source": "{folder}/twice.csv"}),
    "train": Second({"learning_rate": 1e-2, "per_device_train_batch_size": 8, "max_steps": 3}),
    "engine.packing": Second("padded", seen="plan"),
    "engine.precision": Second("bf16"),
    "engine.gradient_cache": Second(64, seen="plan"),
    "engine.compile": Second(True, seen="plan"),
}

SIBLINGS = {
    "in_batch_negatives": "triplet",
    "cosine_regression": "cosent",
    "cosent": "angle",
    "angle": "cosine_regression",
    "triplet": "in_batch_negatives",
    "batch_triplet": "softmax",
    "softmax": "batch_triplet",
    "contrastive": "online_contrastive",
    "online_contrastive": "contrastive",
    "embedding_distillation": "in_batch_negatives",
    "margin_mse": "triplet",
}
"""Objective -> another that takes the same rows."""

GUIDED = {"objective.guide": "self", "objective.guide_margin": 0.05}
HARD = {"objective.hardness": "in_batch", "objective.hardness_strength": 9}
OPTIONS = {
    "in_batch_negatives.scale": Second(5),
    "in_batch_negatives.temperature": Second(0.2),
    "in_batch_negatives.learnable_scale": Second(True, {"train.max_steps": 4}),
    "in_batch_negatives.similarity": Second("dot"),
    "in_batch_negatives.symmetric": Second(True),
    "in_batch_negatives.gather": Second(False, seen="plan"),  # for what it does see test_gathering
    "in_batch_negatives.mask_identical": Second(
        False, {"data.train.source": "{folder}/twice.csv", "data.no_duplicates": False}
    ),
    "in_batch_negatives.hardness": Second("all", HARD),
    "in_batch_negatives.hardness_strength": Second(5, HARD),
    "in_batch_negatives.guide": Second("self"),
    "in_batch_negatives.guide_margin": Second(0.0, GUIDED),
    "in_batch_negatives.margin_strategy": Second("relative", GUIDED),
    "cosent.scale": Second(5),
    "angle.scale": Second(5),
    "triplet.distance": Second("cosine"),
    "triplet.margin": Second(9.0),
    "batch_triplet.mining": Second("semi_hard"),
    "batch_triplet.distance": Second("cosine"),
    "batch_triplet.margin": Second(9.0),
    "softmax.concat": Second(["u", "v"]),
    "contrastive.distance": Second("euclidean"),
    "contrastive.margin": Second(0.9),
    "online_contrastive.distance": Second("euclidean"),
    "online_contrastive.margin": Second(0.9),
    "embedding_distillation.teacher": Second("{folder}/../tiny"),
    "embedding_distillation.distance": Second("cosine"),
    "margin_mse.similarity": Second("cosine"),
}


def of_policy(block: str) -> Iterator[tuple[str, Second]]:
    """The fields of the policy of `data.train` or `data.eval`: of a set with one wrong row."""
    for kind in (
        "empty_text",
        "unlabelled",
        "wrong_score",
        "score_out_of_range",
        "wrong_label",
        "wrong_text",
    ):
        labelled = kind in ("unlabelled", "wrong_label")
        suffix = "jsonl" if kind == "wrong_text" else "csv"
        around: dict[str, Any] = {f"{block}.source": f"{{folder}}/{kind}.{suffix}"}
        if labelled:
            around |= {f"{block}.columns": {"score": None}, f"{block}.score_range": None}
        else:
            around |= {f"{block}.columns": {"label": None}, f"{block}.score_range": [0, 5]}
        if block == "data.eval":
            around["data.eval.task"] = "pair_classification" if labelled else "sts"
        else:
            around["objective"] = {"name": "contrastive" if labelled else "cosine_regression"}
        value = {"empty_text": "keep", "unlabelled": "refuse"}.get(kind, "drop")
        if kind == "empty_text":
            yield f"{block}.policy.{kind}", Second(value, around, seen="data")
        else:
            refused: Literal["base", "changed"] = "changed" if value == "refuse" else "base"
            yield f"{block}.policy.{kind}", Second(value, around, refused=refused)


def of_objectives() -> Iterator[tuple[str, Second]]:
    """The options of every objective; those of all objectives are of each."""
    for leaf in (
        leaf for one in OBJECTIVES for leaf in leaves() if leaf.startswith(f"objective.{_name(one)}.")
    ):
        _, objective, option = leaf.split(".")
        if option == "name":
            yield leaf, Second(SIBLINGS[objective])
        elif option == "matryoshka_dims":
            yield leaf, Second([8, 4])
        elif option == "matryoshka_weights":
            yield leaf, Second([1.0, 0.1], {"objective.matryoshka_dims": [8, 4]})
        elif f"{objective}.{option}" in OPTIONS:
            yield leaf, OPTIONS[f"{objective}.{option}"]


def _name(block: Any) -> str:
    (name,) = block.model_fields["name"].annotation.__args__
    return str(name)


SECOND: dict[str, Second] = {
    **MODEL,
    **{f"data.train.{name}": second for name, second in TRAIN_SET.items()},
    **{f"data.eval.{name}": second for name, second in EVAL_SET.items()},
    **dict(of_policy("data.train")),
    **dict(of_policy("data.eval")),
    **MIXING_AND_ENGINE,
    **dict(of_objectives()),
}
