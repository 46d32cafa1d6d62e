"""What a run is about to do, in lines that a person reads before the first step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import torch
from transformers import TrainingArguments

from sbert_train.config import RunConfig
from sbert_train.data.batch import TextBatch
from sbert_train.data.roles import TEXT_ROLES
from sbert_train.data.sieve import describe
from sbert_train.data.sources import LoadedSet
from sbert_train.data.text_ids import longest_read
from sbert_train.data.tokens import very_long_texts
from sbert_train.model.attention import attention_dropout, describe_attention, head_channels
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.gradient_cache import micro_batches
from sbert_train.model.head import describe_head
from sbert_train.model.packing import padding_saved
from sbert_train.model.resolve import hub_id_of
from sbert_train.objectives.registry import ObjectiveSpec
from sbert_train.training.checkpoints import STATE, Checkpoint, taken_up
from sbert_train.training.data import TrainingData
from sbert_train.training.examination import Examination, examine_sets
from sbert_train.training.negatives import Negatives, count_negatives
from sbert_train.training.parts import Parts
from sbert_train.training.plan_warnings import PlanWarning, plan_warnings
from sbert_train.training.progress import FILE as PROGRESS
from sbert_train.training.set_lines import set_lines
from sbert_train.training.siamese import SiameseModel


def trust_lines(config: RunConfig) -> list[str]:
    """What is told before the model is loaded, as the code that comes with it runs then."""
    if not config.model.trust_remote_code:
        return []
    base = str(config.as_written(("model", "base"), config.model.base))
    revision = config.as_written(("model", "revision"), config.model.revision)
    at = f" at {revision or 'its main branch, whatever that holds by now,'}" if hub_id_of(base) else ""
    return [
        f"code       WARNING: the Python code of {base}{at} runs on this machine (model.trust_remote_code)"
    ]


@dataclass(frozen=True)
class Plan:
    """What a run is about to do, and what there is to say about that.

    Attributes:
        examined: its sets.
        negatives: what anchors are told from, where an objective takes negatives from its batch.
        batches_per_epoch, steps, epochs: of the training.
        warnings: what should perhaps be changed before.
        lines: all of it for people, one thing a line.
    """

    examined: Examination
    negatives: tuple[Negatives, ...]
    batches_per_epoch: int
    steps: int
    epochs: float
    warnings: tuple[PlanWarning, ...]
    lines: tuple[str, ...]


def make_plan(config: RunConfig, base: str, parts: Parts, args: TrainingArguments) -> Plan:
    """Look at the parts of a run, and tell what it is about to do.

    Args:
        base: the base model as it may be told.
    """
    objectives, data, encoder = parts.objectives, parts.data, parts.model.encoder
    examined = examine_sets(config, parts)
    negatives, warnings = negatives_of(config, parts, args), plan_warnings(examined)
    steps, epochs = steps_of(args, len(data.batches))
    lines = [f"model      {base}: {_shape(encoder)}", f"weights    {_trained(parts.model)}"]
    several = len(objectives.specs) > 1
    for number, spec in enumerate(objectives.specs):
        sets = [one.name for i, one in enumerate(data.sets) if objectives.of_set[i] == number]
        lines.append(f"objective  {_objective(spec)}" + (f", for {', '.join(sets)}" if several else ""))
    if parts.classifier is not None:
        lines.append(f"classifier {parts.classifier}")
    for one, facts in zip(data.sets, examined.train, strict=True):
        unused = data.unused[one.name]
        lines.append(
            f"train      {describe(one.name, one.account)}"
            + (f"; not used: {', '.join(unused)}" if unused else "")
            + _cut(one, encoder, unused)
        )
        lines += set_lines(facts)
    for one, facts, task in zip(parts.eval_sets, examined.eval, parts.tasks, strict=True):
        lines.append(f"eval       {describe(one.name, one.account)} ({task.kind}){_cut(one, encoder)}")
        lines += set_lines(facts)
    lines += [
        f"batches    {_batches(data, args)}; {_steps(steps, epochs)}",
        *(f"negatives  {one}{_for_sets(one, data)}" for one in negatives),
        f"engine     {_engine(encoder, data, parts.first_batch)}",
        *_kernels(encoder, args, parts.first_batch),
        f"precision  {_precision(args)} on {args.device.type}" + _processes(args),
        *(f"WARNING    {one}" for one in warnings),
    ]
    return Plan(examined, negatives, len(data.batches), steps, epochs, tuple(warnings), tuple(lines))


def resume_lines(checkpoint: Checkpoint | None, changes: Sequence[str]) -> list[str]:
    """Where a run goes on, and what is not as it was."""
    if checkpoint is None:
        return []
    with taken_up(checkpoint.path):
        stopped_early = bool(checkpoint.read_json(PROGRESS)["stopped_early"])
        finished = checkpoint.step >= int(checkpoint.read_json(STATE)["max_steps"])
    over = ""
    if stopped_early:
        over = "; it had stopped early, as evaluations no longer improved, so that nothing is left to train"
    elif finished and not any(
        one.startswith(("train.num_train_epochs:", "train.max_steps:")) for one in changes
    ):
        over = "; it was finished, so that nothing is left to train: it is evaluated and written again"
    return [
        f"resume     from step {checkpoint.step}, {checkpoint.path}{over}",
        *(f"changed    {one}" for one in changes),
    ]


def _cut(one: LoadedSet, encoder: SentenceEncoder, unused: Sequence[str] = ()) -> str:
    """How many texts of a set are so long that most of them is not even tokenised, where there are any."""
    roles = [role for role in TEXT_ROLES if role in one.rows.column_names and role not in unused]
    prompts = {role: encoder.prompt_for(role) for role in roles}
    count = very_long_texts(one.rows, roles, encoder.max_length, prompts)
    if not count:
        return ""
    texts = f"{count:,} text{'' if count == 1 else 's'} of more than {longest_read(encoder.max_length):,} characters"
    return f"; cut before tokenising: {texts}"


def _shape(encoder: SentenceEncoder) -> str:
    parts = [f"{encoder.pooling} pooling"]
    if encoder.head is not None:
        parts.append(describe_head(encoder.head))
    if encoder.normalize:
        parts.append("normalised")
    limit = "no limit of length" if encoder.max_length is None else f"at most {encoder.max_length} tokens"
    prompts = [f"prompt {name!r}" for name, text in encoder.prompts.items() if text]
    return ", ".join([*parts, f"{encoder.dimension} dimensions", limit, *prompts])


def _trained(model: SiameseModel) -> str:
    weights = [*model.encoder.parameters(), *model.objectives.parameters()]
    trained = _count(p.numel() for p in weights if p.requires_grad)
    adapters = "" if model.encoder.adapters is None else f": {model.encoder.adapters}"
    return f"{trained} of {_count(p.numel() for p in weights)} are trained{adapters}"


def _count(sizes: Iterable[int]) -> str:
    total = sum(sizes)
    return f"{total / 1e6:.1f} M" if total >= 100_000 else f"{total:,}"


def _objective(spec: ObjectiveSpec) -> str:
    # The name of a reference may come from the environment, so that only its part is told.
    told = {name: value for name, value in spec.options.items() if value is not False}
    options = [name if value is True else f"{name} {_value(value)}" for name, value in told.items()]
    if spec.reference is not None:
        options.append("taught by another model" if spec.kind.is_taught else "guided by another model")
    elif "guide_margin" in spec.options:
        options.append("guided by itself")
    if spec.dims is not None:
        options.append(
            f"dimensions {_value(spec.dims)}" + (f" weighing {_value(spec.weights)}" if spec.weights else "")
        )
    return spec.name + (f" ({', '.join(options)})" if options else "")


def _value(value: object) -> str:
    return " + ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _engine(encoder: SentenceEncoder, data: TrainingData, batch: TextBatch) -> str:
    if batch.pooled is not None:
        texts = f"{data.rows.pooled_texts:,} texts"
        return f"the backbone is frozen: the vectors of {texts} are computed once and kept on disk"
    way = f"{encoder.way}: {encoder.why}; {padding_saved(batch):.0%} of the first batch would be padding"
    return f"{way}; {encoder.compiled}" if encoder.compiled else way


def _kernels(encoder: SentenceEncoder, args: TrainingArguments, batch: TextBatch) -> list[str]:
    """What attention is computed by, and in what pieces a batch is encoded, where there is something to tell."""
    if batch.pooled is not None:
        return []
    lines = []
    if encoder.way == "packed":
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(_precision(args), torch.float32)
        dropout, channels = attention_dropout(encoder.backbone), head_channels(encoder.backbone)
        lines.append(f"attention  {describe_attention(args.device, dtype, dropout, channels)}")
    if encoder.gradient_cache is not None:
        count = len(micro_batches(batch, encoder.gradient_cache))
        pieces = f"{count} micro-batches of at most {encoder.gradient_cache:,} tokens, encoded twice"
        once = "a first batch of one micro-batch: it is encoded once"
        lines.append(f"memory     gradient cache: {once if count == 1 else pieces}")
    return lines


def steps_of(args: TrainingArguments, batches: int) -> tuple[int, float]:
    """The optimizer steps of a training and its epochs, as Trainer counts them, of so many batches an epoch."""
    an_epoch = max(1, ceil(batches / args.gradient_accumulation_steps))
    if args.max_steps > 0:
        return args.max_steps, args.max_steps / an_epoch
    return ceil(args.num_train_epochs * an_epoch), float(args.num_train_epochs)


def negatives_of(config: RunConfig, parts: Parts, args: TrainingArguments) -> tuple[Negatives, ...]:
    """What the anchors of the training sets are told from; sets of the same numbers together."""
    data, together = parts.data, config.data.mixing.datasets_per_batch > 1
    found: dict[tuple[Any, ...], Negatives] = {}
    for number, one in enumerate(data.sets):
        has_hard = "negative" in one.rows.column_names and "negative" not in data.unused[one.name]
        counted = count_negatives(
            parts.objectives.spec_of(number),
            (one.name,),
            rows=len(data.rows) if together else len(one.rows),
            hard=len(one.rows[0]["negative"]) if has_hard else 0,
            per_process=args.per_device_train_batch_size,
            processes=args.world_size,
        )
        if counted is not None:
            key = (counted.in_batch, counted.hard, counted.processes, counted.with_more)
            before = found.get(key)
            found[key] = counted if before is None else replace(before, sets=(*before.sets, one.name))
    return tuple(found.values())


def _for_sets(negatives: Negatives, data: TrainingData) -> str:
    return "" if len(negatives.sets) == len(data.sets) else f" ({', '.join(negatives.sets)})"


def _batches(data: TrainingData, args: TrainingArguments) -> str:
    accumulated = args.gradient_accumulation_steps
    text = f"{len(data.batches):,} an epoch, of {min(data.batches.batch_size, len(data.rows)):,} rows"
    return text + (f", {accumulated} to a step" if accumulated > 1 else "")


def steps_in_words(steps: int) -> str:
    """Such as `1 step` or `1,200 steps`."""
    return f"{steps:,} step{'' if steps == 1 else 's'}"


def _steps(steps: int, epochs: float) -> str:
    return f"{steps_in_words(steps)} in {epochs:.3g} epoch{'' if epochs == 1 else 's'}"


def _precision(args: TrainingArguments) -> str:
    return "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"


def _processes(args: TrainingArguments) -> str:
    return f", {args.world_size} processes" if args.world_size > 1 else ""
