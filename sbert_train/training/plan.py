"""What a run is about to do, in lines that a person reads before the first step."""

from collections.abc import Iterable, Sequence

from transformers import TrainingArguments

from sbert_train.data.batch import TextBatch
from sbert_train.data.sieve import describe
from sbert_train.data.sources import LoadedSet
from sbert_train.evaluation.tasks import Task
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import describe_head
from sbert_train.model.packing import padding_saved
from sbert_train.objectives.registry import Objective
from sbert_train.training.prepare import TrainingData


def plan_lines(
    base: str,
    encoder: SentenceEncoder,
    objective: Objective,
    data: TrainingData,
    eval_sets: Sequence[LoadedSet],
    tasks: Sequence[Task],
    args: TrainingArguments,
    first_batch: TextBatch,
) -> list[str]:
    """The plan of a run, one thing a line."""
    lines = [
        f"model      {base}: {_shape(encoder)}",
        f"weights    {_trained(encoder)}",
        f"objective  {_objective(objective)}",
    ]
    for one in data.sets:
        unused = data.unused[one.name]
        lines.append(
            f"train      {describe(one.name, one.account)}"
            + (f"; not used: {', '.join(unused)}" if unused else "")
        )
    lines += [
        f"eval       {describe(one.name, one.account)} ({task.kind})"
        for one, task in zip(eval_sets, tasks, strict=True)
    ]
    lines += [
        f"batches    {_batches(data, objective, args, first_batch)}",
        f"engine     {encoder.way}: {encoder.why}; "
        f"{padding_saved(first_batch):.0%} of the first batch would be padding",
        f"precision  {_precision(args)} on {args.device.type}" + _processes(args),
    ]
    return lines


def _shape(encoder: SentenceEncoder) -> str:
    parts = [f"{encoder.pooling} pooling"]
    if encoder.head is not None:
        parts.append(describe_head(encoder.head))
    if encoder.normalize:
        parts.append("normalised")
    limit = "no limit of length" if encoder.max_length is None else f"at most {encoder.max_length} tokens"
    prompts = [f"prompt {name!r}" for name, text in encoder.prompts.items() if text]
    return ", ".join([*parts, f"{encoder.dimension} dimensions", limit, *prompts])


def _trained(encoder: SentenceEncoder) -> str:
    trained = _count(p.numel() for p in encoder.parameters() if p.requires_grad)
    adapters = "" if encoder.adapters is None else f": {encoder.adapters}"
    return f"{trained} of {_count(p.numel() for p in encoder.parameters())} are trained{adapters}"


def _count(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:.1f} M"


def _objective(objective: Objective) -> str:
    options = ", ".join(f"{name} {value}" for name, value in objective.options.items())
    return objective.function.__name__ + (f" ({options})" if options else "")


def _batches(data: TrainingData, objective: Objective, args: TrainingArguments, batch: TextBatch) -> str:
    accumulated = args.gradient_accumulation_steps
    most = min(data.batches.batch_size, len(data.rows))
    text = f"{len(data.batches):,} an epoch, of {most} rows"
    if accumulated > 1:
        text += f", {accumulated} to a step"
    if objective.batch_is_negatives:
        shared = most if objective.options.get("gather") else min(args.per_device_train_batch_size, most)
        hard = batch.index["negative"].shape[1] * shared if "negative" in batch.index else 0
        text += (
            f"; each anchor sees {shared - 1} in-batch" + (f" and {hard} hard" if hard else "") + " negatives"
        )
    return text


def _precision(args: TrainingArguments) -> str:
    return "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"


def _processes(args: TrainingArguments) -> str:
    return f", {args.world_size} processes" if args.world_size > 1 else ""
