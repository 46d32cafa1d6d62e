"""What a run can be told: one frozen model per block of the YAML file, one description per key.

The reference page (docs/config.md) and the error messages derive from the annotations and descriptions below.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from sbert_train.config.blocks import (
    AboveZero,
    Block,
    Count,
    Number,
    OneOf,
    Only,
    Scalar,
    Seed,
    Share,
    Text,
    TreePath,
)
from sbert_train.config.objectives import Objective
from sbert_train.config.policy import PolicyConfig
from sbert_train.errors import SbertTrainError
from sbert_train.paths import path_problem

Pooling = Literal["mean", "cls", "max", "mean_sqrt_len", "weighted_mean", "last"]
Activation = Literal["tanh", "relu", "gelu", "silu", "sigmoid", "identity"]
TaskKind = Literal["sts", "retrieval", "pair_classification", "triplet", "reranking", "nli", "clustering"]

TEXT_ROLES = ("anchor", "positive", "negative", "sentence1", "sentence2")
TextRole = Annotated[str, OneOf(TEXT_ROLES)]
Role = Annotated[str, OneOf((*TEXT_ROLES, "score", "label"))]


class HeadConfig(Block):
    """Dense layers over the pooled vector, randomly initialised."""

    dim: Count = Field(description="Dimensions of the embedding that comes out.")
    activation: Activation = Field("tanh", description="Function after each dense layer.")
    dropout: Share = Field(0.0, description="Share of the inputs of each dense layer dropped in training.")
    layers: Count = Field(1, description="Number of dense layers, each to `dim` dimensions.")
    shared: bool = Field(
        True,
        description="true: one head for every text. false: one for queries (anchor, sentence1) and one for documents "
        "(positive, negative, sentence2); such a model has to be told the role of a text.",
    )


class LoraConfig(Block):
    """Low-rank adapters (LoRA) in the transformer; nothing else of it trains, a head does. Needs the extra `lora`."""

    r: Count = Field(16, description="Rank of the adapters.")
    alpha: Count = Field(32, description="Their output is scaled by alpha / r.")
    dropout: Share = Field(0.05, description="Share of the inputs of each adapter dropped in training.")
    target_modules: Annotated[tuple[Text, ...], Field(min_length=1)] | None = Field(
        None,
        description="Linear layers that get an adapter, by name, such as `[query, value]`. null: those that peft "
        "adapts in this architecture, and where it knows none all linear layers of the transformer layers.",
    )


class ModelConfig(Block):
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
        None,
        description="A new head in place of the base's own; what the run is measured against is the base with its own. "
        "null: the base's own head, if it has one.",
    )
    normalize: bool | None = Field(
        None, description="Scale embeddings to length 1. null: as the base's folder says."
    )
    freeze: Literal["none", "backbone", "embeddings"] | Count = Field(
        "none",
        description="What does not train: nothing, all of the transformer, its token embeddings, "
        "or the token embeddings and that many of the lowest layers.",
    )
    lora: LoraConfig | None = Field(
        None, description="Low-rank adapters, merged into the saved model. null: none."
    )
    prompts: Mapping[TextRole, str] = Field(
        {},
        description="Role -> text put before each text of that role, in training, evaluation and export alike. "
        "No `${NAME}`, as it is saved with the model.",
    )

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        if problem := path_problem(self.base):
            yield ("base",), problem
        if self.lora is not None and self.freeze != "none":
            yield ("freeze",), "with model.lora only the adapters train: expected none"
            yield ("lora",), "its adapters are all that trains: expected null, or model.freeze none"


class _Set(Block):
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
        "its ending, or the last part of a Hub id, with `${NAME}` as NAME. No `${NAME}` itself, as reports and the "
        "model's card tell it.",
    )
    subset: Text | None = Field(None, description="Configuration of a Hub data set, such as `pair-score`.")
    columns: Mapping[Role, Text | tuple[Text, ...] | None] = Field(
        {},
        description="Role -> column that holds it; several columns only for `negative` and `score`. A column that "
        "bears the name of a role needs no entry; null leaves the role out.",
    )
    where: Mapping[str, Scalar | tuple[Scalar, ...]] = Field(
        {}, description="Column -> value or list of values; other rows are left out."
    )
    score_range: tuple[Number, Number] | None = Field(
        None,
        description="Lowest and highest score, such as `[0, 5]`; mapped to 0 to 1. null: taken as it is.",
    )
    limit: Count | None = Field(None, description="At most this many rows, the first ones. null: all.")
    labels: tuple[Text, ...] | None = Field(
        None,
        description="Names of the classes, such as `[entailment, neutral, contradiction]`, where the column of the "
        "role `label` holds text: the first is class 0, the second 1. null: it holds whole numbers.",
    )
    policy: PolicyConfig = Field(
        PolicyConfig(), description="What is done about a row with something wrong in it."
    )

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        if problem := path_problem(self.source):
            yield ("source",), problem
        elif not re.fullmatch(r"[\w.-]+", self.name):
            yield ("name",), 'expected letters, digits, "_", "-" and "." only'
        for role, column in self.columns.items():
            if isinstance(column, tuple) and not (column and role in ("negative", "score")):
                yield ("columns", role), "expected one column (only negative and score may have several)"
        if self.labels is not None and (len(self.labels) < 2 or len(set(self.labels)) < len(self.labels)):
            yield ("labels",), "expected at least two names, all different"
        if self.score_range is not None and self.score_range[0] >= self.score_range[1]:
            yield ("score_range",), "expected [lowest, highest]"


class TrainSet(_Set):
    """One training set."""

    split: Text = Field(
        "train", description="Split of a Hub data set or of `builtin:contrast`; for files it stays `train`."
    )
    weight: AboveZero = Field(1.0, description="How often it is drawn from, for `mixing.strategy: weighted`.")
    objective: Objective | None = Field(
        None,
        description="An objective of its own for this set, with the keys of `objective`. Sets whose objective says the "
        "same share it, and its weights if it has any. null: the run's.",
    )


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


class MixingConfig(Block):
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


class DataConfig(Block):
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

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
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


class EngineConfig(Block):
    """How fast and in how much memory a run computes what the rest of the configuration says."""

    packing: Literal["auto", "packed", "sorted", "padded"] = Field(
        "auto",
        description="packed: no padding at all. sorted: sub-batches of similar length. padded: one padded batch. "
        "auto: packed where a check against the padded forward passes, else sorted.",
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto",
        description="Of the matrix products. auto: bf16 where the hardware computes with it (GPUs of compute "
        "capability 8.0 or higher, CPUs with AVX512-BF16 or AMX), else fp32. fp16 needs a GPU. Evaluation is in fp32.",
    )
    gradient_cache: Count | None = Field(
        None,
        description="The exact gradient of a large batch in the memory of a small one: texts are encoded in "
        "micro-batches of at most so many tokens, twice (Gao et al. 2021), which takes about a third more time. "
        "Such as 2048 on a laptop, more on a GPU. in_batch_negatives compute the loss in chunks of rows, too; other "
        "objectives compute theirs whole. Not with model.freeze: backbone. null: whole batches.",
    )
    compile: bool = Field(
        False,
        description="Fuse what lies between two attentions with torch.compile; packed only, checked on a first batch, "
        "not with model.freeze: backbone. "
        "On CPU it needs a C++ compiler, on CUDA Triton. It takes 10 to 50 s at start, less once its cache is warm. "
        "all-MiniLM-L6-v2 in fp32 gained nothing by it on an AVX2 CPU (0.99 to 1.02 times the speed).",
    )


class RunConfig(Block):
    """A whole run; `load_config` makes it from a file, `RunConfig.model_validate` from a dict."""

    output_dir: Text = Field(description="Folder of the run (relative to the working directory).")
    seed: Seed = Field(42, description="Seed of everything random.")
    model: ModelConfig = Field(description="The encoder that is fine-tuned.")
    data: DataConfig = Field(description="The rows to train on and to evaluate with.")
    objective: Objective | None = Field(
        None, description="The loss. Needed, unless each of data.train names its own."
    )
    train: Mapping[str, Any] = Field({}, description="transformers.TrainingArguments by their own names.")
    engine: EngineConfig = Field(
        EngineConfig(), description="How fast and in how much memory it is computed."
    )

    _written: Mapping[TreePath, str] = PrivateAttr(default_factory=dict)
    """Values that hold `${NAME}`, as they stood in the file; `dump_config` writes these."""
    _environment: Mapping[str, str] = PrivateAttr(default_factory=dict)
    """What stands for NAME in them."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objective of each training set."""
        own = (one.objective or self.objective for one in self.data.train)
        return tuple(objective for objective in own if objective is not None)

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        for name, value in self.train.items():
            if not _is_finite(value):
                yield ("train", name), "expected a finite number"
        if problem := path_problem(self.output_dir):
            yield ("output_dir",), problem
        if len(self.objectives) < len(self.data.train):
            yield (
                ("objective",),
                "missing, and needed: the loss; or give each of data.train an objective of its own",
            )
        if self.objective is not None and all(one.objective is not None for one in self.data.train):
            yield ("objective",), "expected null, as each of data.train has an objective of its own"
        if self.engine.gradient_cache is not None and self.model.freeze == "backbone":
            yield (
                ("engine", "gradient_cache"),
                "expected null, as a frozen backbone (model.freeze) keeps nothing for a gradient",
            )
        if self.engine.compile and self.model.freeze == "backbone":
            yield ("engine", "compile"), "expected false, as a frozen backbone (model.freeze) is not trained"
        if self.data.mixing.datasets_per_batch > 1 and any(
            one != self.objectives[0] for one in self.objectives
        ):
            yield (
                ("data", "mixing", "datasets_per_batch"),
                "expected 1, as the sets have different objectives and a batch has one",
            )

    def for_seed(self, seed: int) -> "RunConfig":
        """The same run with another seed, in a folder of its own below output_dir; ${NAME} stays as it is written."""

        def below(folder: str) -> str:
            return f"{folder.removesuffix('/')}/seed-{seed}"

        run = self.model_copy(update={"seed": seed, "output_dir": below(self.output_dir)})
        run._written = {at: text for at, text in self._written.items() if at != ("seed",)}
        if ("output_dir",) in run._written:
            run._written = {**run._written, ("output_dir",): below(run._written["output_dir",])}
        return run

    def as_written(self, at: TreePath, value: object) -> object:
        """A value as a message may quote it: as the file has it, so without what the environment holds."""
        if at in self._written:
            return self._written[at]
        return "${...}" if any(place[: len(at)] == at for place in self._written) else value

    @contextmanager
    def hiding_environment(self) -> Iterator[None]:
        """Within the block, an error that a user can mend says `${NAME}` where it would quote what NAME holds.

        Values of less than four characters are left: they are no secrets, and would be found in any sentence.
        """
        try:
            yield
        except SbertTrainError as error:
            error.args = (self.without_environment(str(error)),)
            raise

    def without_environment(self, text: str) -> str:
        """A text with `${NAME}` where it quotes what NAME holds."""
        for name, value in sorted(self._environment.items(), key=lambda item: -len(item[1])):
            if len(value) >= 4:
                text = text.replace(value, f"${{{name}}}")
        return text

    def hidden(self, value: Any) -> Any:
        """A value whose texts, also those in lists and mappings, went through `without_environment`; keys stay."""
        if isinstance(value, Mapping):
            return {key: self.hidden(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.hidden(inner) for inner in value]
        return self.without_environment(value) if isinstance(value, str) else value


def _is_finite(value: object) -> bool:
    """Whether a value, and all that it holds, is no infinite number and no NaN."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or isfinite(value)


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
