"""What a run can be told: one frozen model per block of the YAML file, one description per key.

The reference page (docs/config.md) and the error messages derive from the annotations and descriptions below.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

TreePath = tuple[str | int, ...]
"""Where a value stands in the file: ("data", "train", 0, "source")."""

Pooling = Literal["mean", "cls", "max", "mean_sqrt_len", "weighted_mean", "last"]
Activation = Literal["tanh", "relu", "gelu", "silu", "sigmoid", "identity"]
TaskKind = Literal["sts", "retrieval", "pair_classification", "triplet", "reranking", "nli", "clustering"]

LATER_OBJECTIVES = (
    *("triplet", "softmax", "contrastive", "online_contrastive"),
    *("cosent", "angle", "embedding_distillation", "margin_mse"),
)
"""Objectives that have a name in the configuration but come in a later version."""


def _not_bool(value: object) -> object:
    """Python takes true for 1; who writes `seed: true` does not mean it."""
    if isinstance(value, bool):
        raise PydanticCustomError("bool_for_number", "a number, not true or false")
    return value


@dataclass(frozen=True)
class Only:
    """The type of a key whose feature comes in a later version: `off`, which switches it off, is all it may be."""

    off: bool | None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, given: object) -> object:
        if given != self.off:
            raise PydanticCustomError("not_available", "not available in this version, leave it off")
        return given


@dataclass(frozen=True)
class OneOf:
    """The type of a key of a mapping that must be one of these, and is plain text for those who use it."""

    choices: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.choices))


def _problems(found: Iterable[tuple[TreePath, str]]) -> None:
    """Raise all cross-key problems, each with its path below the block that raises, as one error.

    They quote no value: it may come from the environment.
    """
    if problems := list(found):
        raise PydanticCustomError("cross_check", "keys do not fit together", {"problems": problems})


TEXT_ROLES = ("anchor", "positive", "negative", "sentence1", "sentence2")
TextRole = Annotated[str, OneOf(TEXT_ROLES)]
Role = Annotated[str, OneOf((*TEXT_ROLES, "score", "label"))]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, BeforeValidator(_not_bool), Field(ge=1)]
Seed = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=2**32 - 1)]
Number = Annotated[float, BeforeValidator(_not_bool)]
AboveZero = Annotated[float, BeforeValidator(_not_bool), Field(gt=0)]
Share = Annotated[float, BeforeValidator(_not_bool), Field(ge=0, lt=1)]
Scalar = bool | int | float | str


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class HeadConfig(_Block):
    """Dense layers over the pooled vector, randomly initialised."""

    dim: Count = Field(description="Dimensions of the embedding that comes out.")
    activation: Activation = Field("tanh", description="Function after each dense layer.")
    dropout: Share = Field(0.0, description="Share of the inputs of each dense layer dropped in training.")
    layers: Count = Field(1, description="Number of dense layers, each to `dim` dimensions.")
    shared: Annotated[bool, Only(True)] = Field(True, description="One head for every role.")


class ModelConfig(_Block):
    """The encoder that is fine-tuned."""

    base: Text = Field(
        description="Where the weights come from: a Hub id, a folder (relative to the working directory), "
        "or `package://module/folder` for weights shipped in a Python package."
    )
    revision: Text | None = Field(
        None, description="Branch, tag or commit of a Hub id; null: its main branch."
    )
    trust_remote_code: bool = Field(
        False, description="Run Python code that the Hub repository of the base brings."
    )
    pooling: Pooling | None = Field(
        None, description="Token vectors -> text vector. null: as the base's folder says, else mean."
    )
    max_length: Count | None = Field(
        None,
        description="Longest text in tokens, special tokens included; the rest is cut. null: the base's own.",
    )
    head: HeadConfig | None = Field(
        None, description="A new head in place of the base's own. null: the base's own head, if it has one."
    )
    normalize: bool | None = Field(
        None, description="Scale embeddings to length 1. null: as the base's folder says."
    )
    freeze: Literal["none", "backbone", "embeddings"] | Count = Field(
        "none",
        description="What does not train: nothing, all of the transformer, its token embeddings, "
        "or the token embeddings and that many of the lowest layers.",
    )
    lora: Annotated[Any, Only(None)] = Field(None, description="Low-rank adapters.")
    prompts: Mapping[TextRole, str] = Field(
        {},
        description="Role -> text put before each text of that role, in training, evaluation and export alike.",
    )


class _Set(_Block):
    """What training and evaluation sets have in common."""

    source: Text = Field(
        description="A csv, tsv, json, jsonl or parquet file or a glob of them (relative to the working directory), "
        "a Hub id, or `builtin:contrast`."
    )
    name: Text = Field(
        default_factory=lambda fields: name_of_source(
            fields.get("source", "")
        ),  # not there when it is wrong itself
        description="Name in logs and metrics: letters, digits, `_`, `-` and `.`. Left out: the file's name without "
        "its ending, or the last part of a Hub id.",
    )
    subset: Text | None = Field(None, description="Configuration of a Hub data set, such as `pair-score`.")
    columns: Mapping[Role, Text | tuple[Text, ...] | None] = Field(
        {},
        description="Role -> column that holds it; several columns only for `negative`. A column that bears "
        "the name of a role needs no entry; null leaves the role out.",
    )
    where: Mapping[str, Scalar | tuple[Scalar, ...]] = Field(
        {}, description="Column -> value or list of values; other rows are left out."
    )
    score_range: tuple[Number, Number] | None = Field(
        None,
        description="Lowest and highest score, such as `[0, 5]`; mapped to 0 to 1. null: taken as it is.",
    )
    limit: Count | None = Field(None, description="At most this many rows, the first ones. null: all.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _problems(self._wrong_keys())
        return self

    def _wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        if not re.fullmatch(r"[\w.-]+", self.name):
            yield ("name",), 'expected letters, digits, "_", "-" and "." only'
        for role, column in self.columns.items():
            if isinstance(column, tuple) and not (column and role == "negative"):
                yield ("columns", role), "expected one column (only negative may have several)"
        if self.score_range is not None and self.score_range[0] >= self.score_range[1]:
            yield ("score_range",), "expected [lowest, highest]"


class TrainSet(_Set):
    """One training set."""

    split: Text = Field(
        "train", description="Split of a Hub data set or of `builtin:contrast`; for files it stays `train`."
    )
    weight: AboveZero = Field(1.0, description="How often it is drawn from, for `mixing.strategy: weighted`.")
    objective: Annotated[Any, Only(None)] = Field(None, description="An objective of its own for this set.")


class EvalSet(_Set):
    """One evaluation set; any of its metrics can select the best checkpoint, as `eval_NAME_METRIC`."""

    task: TaskKind = Field(
        description="sts: correlation of similarities with scores. retrieval: each anchor ranks all positives. "
        "pair_classification: a threshold on the similarity tells label 1 from label 0. triplet: each anchor is nearer "
        "to its positive than to its negatives. reranking: each anchor ranks its own candidates, with label 1 or 0, or "
        "positives and negatives. nli: the classifier that objective softmax trained finds the label. clustering: "
        "sentences of one label lie together."
    )
    split: Text = Field(
        "train", description="Split of a Hub data set or of `builtin:contrast`; for files it stays `train`."
    )


class MixingConfig(_Block):
    """How batches are drawn from several training sets."""

    strategy: Literal["proportional", "round_robin", "weighted"] = Field(
        "proportional",
        description="proportional: each set as often as it has rows. round_robin: in turns, until the shortest "
        "set is used up. weighted: by the sets' `weight`.",
    )
    datasets_per_batch: Count = Field(
        1,
        description="Into so many equal parts a batch is divided, each from another set while there are others.",
    )


class DataConfig(_Block):
    """The rows to train on and to evaluate with."""

    train: tuple[TrainSet, ...] = Field(min_length=1, description="The training sets, at least one.")
    eval: tuple[EvalSet, ...] = Field(
        (), description="The evaluation sets; the first selects the best checkpoint."
    )
    mixing: MixingConfig = Field(MixingConfig(), description="How batches are drawn from several sets.")
    no_duplicates: bool = Field(
        True,
        description="Rows that share a text (with its prompt) are kept out of one batch as far as possible, where it "
        "would be its own negative; with several sets in a batch, out of one set's part of it.",
    )
    streaming: Annotated[bool, Only(False)] = Field(False, description="Read rows as they are needed.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _problems(self._wrong_keys())
        return self

    def _wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        for block, sets in (("train", self.train), ("eval", self.eval)):
            first: dict[str, int] = {}
            for i, one in enumerate(sets):
                if first.setdefault(one.name, i) != i:
                    same = f"data.{block}.{first[one.name]} has this name, too"
                    yield (block, i, "name"), f"{same}: expected a name of its own"
        if self.mixing.datasets_per_batch > len(self.train):
            yield (
                ("mixing", "datasets_per_batch"),
                f"expected at most {len(self.train)}, the number of training sets",
            )


class InBatchNegatives(_Block):
    """Each anchor must find its positive among all positives and negatives of the batch."""

    name: Literal["in_batch_negatives"] = Field(description="The objective.")
    scale: AboveZero = Field(
        20.0, description="Factor on the similarities before the softmax; 1 / temperature."
    )
    similarity: Literal["cosine", "dot"] = Field("cosine", description="Similarity of two embeddings.")
    symmetric: bool = Field(
        False, description="Add the loss of each positive finding its anchor, and average."
    )
    gather: bool = Field(True, description="Use the texts of all processes as negatives, with gradient.")
    mask_identical: bool = Field(
        True, description="A text equal to the positive or the anchor, prompts included, is no negative."
    )


class CosineRegression(_Block):
    """The cosine of two embeddings must equal their score."""

    name: Literal["cosine_regression"] = Field(description="The objective.")


Objective = InBatchNegatives | CosineRegression


class EngineConfig(_Block):
    """How the same result is computed."""

    packing: Literal["auto", "packed", "sorted", "padded"] = Field(
        "auto",
        description="packed: no padding at all. sorted: sub-batches of similar length. padded: one padded batch. "
        "auto: packed where a check against the padded forward passes, else sorted.",
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto",
        description="Of the matrix products. auto: bf16 where the hardware computes with it, else fp32.",
    )
    gradient_cache: Annotated[Any, Only(None)] = Field(None, description="Tokens per micro-batch.")
    compile: Annotated[bool, Only(False)] = Field(False, description="Compile the encoder.")


class RunConfig(_Block):
    """A whole run; `load_config` makes it from a file, `RunConfig.model_validate` from a dict."""

    output_dir: Text = Field(description="Folder of the run (relative to the working directory).")
    seed: Seed = Field(42, description="Seed of everything random.")
    model: ModelConfig = Field(description="The encoder that is fine-tuned.")
    data: DataConfig = Field(description="The rows to train on and to evaluate with.")
    objective: Objective = Field(discriminator="name", description="The loss.")
    train: Mapping[str, Any] = Field({}, description="transformers.TrainingArguments by their own names.")
    engine: EngineConfig = Field(EngineConfig(), description="How the same result is computed.")

    _written: Mapping[TreePath, str] = PrivateAttr(default_factory=dict)
    """Values that hold `${NAME}`, as they stood in the file; `dump_config` writes these."""

    def as_written(self, at: TreePath, value: object) -> object:
        """A value as a message may quote it: as the file has it, so without what the environment holds."""
        if at in self._written:
            return self._written[at]
        return "${...}" if any(place[: len(at)] == at for place in self._written) else value


def name_of_source(source: str) -> str:
    """The name of a set that was given none.

    >>> [name_of_source(source) for source in ("data/my pairs.csv", "stanfordnlp/snli", "builtin:contrast")]
    ['my_pairs', 'snli', 'contrast']
    >>> name_of_source("data/nli/*.jsonl")
    'nli'
    """
    path = PurePath(source.removeprefix("builtin:"))
    is_file = path.suffix.lower() in (".csv", ".tsv", ".json", ".jsonl", ".parquet")
    parts = [*path.parts[:-1], path.stem if is_file else path.name]
    plain = [part for part in parts if not re.search(r"[*?\[]", part)]
    return re.sub(r"[^\w.-]+", "_", plain[-1] if plain else "set").strip("_") or "set"
