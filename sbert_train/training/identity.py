"""What a run is made of, kept in each checkpoint, so that no other run goes on from it."""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import datasets
import torch
from transformers import TrainingArguments

from sbert_train.config import RunConfig, dump_config
from sbert_train.config.reader import one_line, parse_yaml
from sbert_train.data.cache import file_digest
from sbert_train.data.sources import LoadedSet
from sbert_train.data.tokens import tokenizer_identity
from sbert_train.errors import CommandError, ConfigError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.resolve import resolve_model
from sbert_train.training.checkpoints import Checkpoint, taken_up
from sbert_train.training.resume import AUTO, NEVER, Start
from sbert_train.training.run_folder import describe_environment
from sbert_train.training.vectors import digest

FILE = "run.json"
CHANGEABLE = (
    "train.num_train_epochs",
    "train.max_steps",
    "train.learning_rate",
    "train.weight_decay",
    "train.warmup_steps",
    "train.max_grad_norm",
    "train.logging_strategy",
    "train.logging_steps",
    "train.eval_delay",
    "train.save_total_limit",
    "train.per_device_eval_batch_size",
    "train.dataloader_num_workers",
    "train.dataloader_persistent_workers",
    "train.dataloader_prefetch_factor",
    "train.dataloader_pin_memory",
    "train.report_to",
    "engine",
    "versions",
)
"""Keys that a run may have another value of when it goes on, and that then take effect; `engine` and `versions` with
all below them. With others it would be another run."""
_PLACES = {("output_dir",), ("model", "base"), ("model", "revision")}
_REFERENCES = ("teacher", "guide")
_NAME_OF_SET = re.compile(r"data\.(train|eval)\.[0-9]+\.name")
_DIGITS = 16  # of a sha256, in messages and for values from the environment


@dataclass(frozen=True)
class RunIdentity:
    """What the weights depend on that come out of a run.

    Attributes:
        config: dotted key -> value as JSON, with `${NAME}` as the file has it, and a hash of what it stands for.
        data: `train NAME` or `eval NAME` -> the sha256 of its rows.
        base: the sha256 of the weights that the run starts from, and of the tokenizer.
        references: the sha256 of the weights of teachers and guides.
        versions: package -> version.
        processes: how many train together.
        hardware: device and threads; another one rounds differently, and is told, not refused.
    """

    config: Mapping[str, str]
    data: Mapping[str, str]
    base: str
    references: str
    versions: Mapping[str, str]
    processes: int
    hardware: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def identity_of(
    config: RunConfig,
    args: TrainingArguments,
    encoder: SentenceEncoder,
    train: Sequence[LoadedSet],
    evaluate: Sequence[LoadedSet],
) -> RunIdentity:
    """The identity of a run before its first step."""
    named = [("train", one) for one in train] + [("eval", one) for one in evaluate]
    environment = describe_environment()
    return RunIdentity(
        config=_flat_config(config),
        data={f"{kind} {one.name}": digest_of_rows(one.rows) for kind, one in named},
        base=_base_digest(encoder, has_new_head=config.model.head is not None),
        references=_references_digest(config),
        versions={"python": environment["python"], **environment["packages"]},
        processes=args.world_size,
        hardware=f"{args.device.type}, {torch.get_num_threads()} threads",
    )


def digest_of_rows(rows: datasets.Dataset) -> str:
    """The sha256 of the content of all rows, in their order, whatever file or cache it came from."""
    found = hashlib.sha256(json.dumps(sorted(rows.column_names)).encode())
    for table in rows.with_format("arrow").select_columns(sorted(rows.column_names)).iter(10_000):
        for batch in table.combine_chunks().to_batches():
            found.update(batch.serialize())
    return found.hexdigest()


def require_same_run(chosen: Checkpoint | None, now: RunIdentity, start: Start) -> list[str]:
    """Check that a checkpoint is one of this run.

    Args:
        chosen: None for a run from the beginning, which is itself.
        start: says which keys of CHANGEABLE, or parts of them, may differ.

    Returns:
        What differs and is allowed to, one line each.

    Raises:
        ConfigError: something else differs; one line for each, and one that says what to do.
    """
    told: list[str] = []
    refused: list[str] = []
    keys: list[str] = []
    if chosen is None:
        return []
    name = chosen.name
    with taken_up(chosen.path):
        differences = list(_differences(chosen.read_json(FILE), now.to_json()))
    for key, was, is_now in differences:
        line = f"{key}: {one_line(was)} in {name}, {one_line(is_now)} now"
        if key == "train.learning_rate" and _follows_metrics(now):
            line += f" (not with {now.config['train.lr_scheduler_type']}, which sets it by what it has seen)"
            refused.append(line)
            keys.append("")
        elif key == "hardware" or any(_is_below(key, one) for one in start.allow_changes):
            told.append(line)
        else:
            is_name = _NAME_OF_SET.fullmatch(key) and "not there" not in (was, is_now)
            same = shlex.quote(f"{key}={one_line(was)}")
            refused.append(line + (f"; it is as before with {same}" if is_name else ""))
            keys.append(key)
    if refused:
        changeable = [key for key in keys if any(_is_below(key, one) for one in CHANGEABLE)]
        go_on = ""
        if len(changeable) == len(keys):
            go_on = f"go on with {' '.join(f'--allow-changes {key}' for key in keys)}, "
        anew = "begin anew with --overwrite, or choose another output_dir"
        if start.resume not in (AUTO, NEVER):
            anew = "begin anew without --resume, and with --overwrite where output_dir holds a run"
        advice = f"{name} is of another run: {go_on}{anew}"
        raise ConfigError("\n".join([*refused, advice]))
    return told


def require_changeable(keys: Iterable[str]) -> None:
    """Check what --allow-changes names.

    Raises:
        CommandError: a key that a run cannot go on with another value of.
    """
    for key in keys:
        if not any(_is_below(key, one) for one in CHANGEABLE):
            raise CommandError(f"--allow-changes {key}: expected one of {', '.join(CHANGEABLE)}")


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key, value before, value now) of what is not the same."""
    for part, prefix in (("config", ""), ("data", "data of "), ("versions", "versions.")):
        was, is_now = before.get(part, {}), now[part]
        for key in sorted({*was, *is_now}):
            if was.get(key) != is_now.get(key):
                values = (str(one.get(key, "not there")) for one in (was, is_now))
                first, second = (value[:_DIGITS] if part == "data" else value for value in values)
                yield prefix + key, first, second
    names = {"base": "weights or tokenizer of model.base", "references": "weights of teachers and guides"}
    for key in ("base", "references", "processes", "hardware"):
        if before.get(key) != now[key]:
            name = names.get(key, key)
            yield name, str(before.get(key))[: _DIGITS * 2], str(now[key])[: _DIGITS * 2]


def _follows_metrics(now: RunIdentity) -> bool:
    """Whether the learning rate has a state of its own, besides the step."""
    return now.config.get("train.lr_scheduler_type", "").strip('"') in ("reduce_lr_on_plateau", "greedy")


def _is_below(key: str, allowed: str) -> bool:
    return key == allowed or key.startswith(f"{allowed}.")


def _flat_config(config: RunConfig) -> dict[str, str]:
    """Every value by its dotted key, but for places of files: they may be moved, and what they hold is compared."""
    values = dict(_leaves(config.model_dump(mode="json"), ()))
    flat = {}
    for at, written in _leaves(parse_yaml(dump_config(config)), ()):
        if _is_place(at) and written != "self":
            continue
        text = json.dumps(written, ensure_ascii=False)
        if isinstance(written, str) and "${" in written and at in values:
            text += f" ({hashlib.sha256(str(values[at]).encode()).hexdigest()[:_DIGITS]})"
        flat[".".join(map(str, at))] = text
    return flat


def _is_place(at: tuple[str | int, ...]) -> bool:
    """Whether a value says where files lie: of the run, of the base, of a set, of a teacher or guide."""
    if at[:1] == ("data",) and len(at) == 4:
        return at[3] == "source"
    return at in _PLACES or (at[-2:-1] == ("objective",) and at[-1] in _REFERENCES)


def _leaves(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Path and value of everything in a tree that holds nothing itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    empty = True
    for key, one in items:
        empty = False
        yield from _leaves(one, (*at, key))
    if empty:
        yield at, value


def _references_digest(config: RunConfig) -> str:
    """Of the files of weights of every teacher and guide, in the order of the training sets."""
    found = hashlib.sha256()
    for objective in config.objectives:
        for reference in filter(None, (getattr(objective, name, None) for name in _REFERENCES)):
            if reference != "self":
                for file in sorted(resolve_model(reference).rglob("*.safetensors")):
                    found.update(f"{file.name} {file_digest(file)}".encode())
    return found.hexdigest()


def _base_digest(encoder: SentenceEncoder, *, has_new_head: bool) -> str:
    """Of what was read, not of what was drawn: that follows from the seed."""
    parts = [
        digest(encoder.backbone, but="lora_"),
        json.dumps(tokenizer_identity(encoder.tokenizer), default=str),
    ]
    if encoder.head is not None and not has_new_head:
        parts.append(digest(encoder.head))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
