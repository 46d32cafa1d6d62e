"""The `train` block -> transformers.TrainingArguments: every name and value checked, ours where nothing is said."""

import os
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from enum import Enum
from math import isclose, isfinite
from typing import Any, cast, get_type_hints

import torch
from pydantic import TypeAdapter, ValidationError
from transformers import EarlyStoppingCallback, TrainingArguments
from transformers.integrations.integration_utils import get_available_reporting_integrations

from sbert_train.config import RunConfig
from sbert_train.config.reader import describe
from sbert_train.config.train_keys import (
    ABOVE,
    AT_LEAST,
    EARLY_STOPPING_KEYS,
    RENAMED,
    RESERVED,
    TRAIN_DEFAULTS,
)
from sbert_train.config.words import alternatives, did_you_mean, either, in_words
from sbert_train.errors import ConfigError
from sbert_train.evaluation.tasks import TASKS
from sbert_train.model.precision import native_precision
from sbert_train.objectives.registry import OBJECTIVES
from sbert_train.paths import expanded

_EARLY_STOPPING_TYPES: Mapping[str, Any] = dict(zip(EARLY_STOPPING_KEYS, (int, float), strict=True))
_TYPES: Mapping[str, Any] = {
    **get_type_hints(TrainingArguments),
    **_EARLY_STOPPING_TYPES,
}
_NAMES = {field.name for field in fields(TrainingArguments) if field.init} | set(EARLY_STOPPING_KEYS)


LEAVES_NOTHING: Mapping[str, Any] = {
    "eval_strategy": "no",
    "save_strategy": "no",
    "load_best_model_at_end": False,
    "logging_strategy": "no",
    "report_to": "none",
    "push_to_hub": False,
    "lr_scheduler_type": "constant",  # others may need evaluations, or arguments of their own
    "lr_scheduler_kwargs": None,
    "warmup_steps": 0,
}
"""What is forced where a run is only tried for some steps."""


def training_arguments(config: RunConfig, **forced: Any) -> TrainingArguments:
    """The arguments of a run.

    Args:
        forced: TrainingArguments that take precedence over everything.

    Raises:
        ConfigError: one line for each name or value in `train` that is wrong or does not fit the others.
    """
    given, problems = _given(config)
    values = {
        **TRAIN_DEFAULTS,
        **_when(config, given),
        **_hardware(config, given, problems),
        **given,
    }
    problems += _misfits(config, given, values)
    if problems:
        raise ConfigError("\n".join(problems))
    dropped = EARLY_STOPPING_KEYS if _is_one_of_several() else (*EARLY_STOPPING_KEYS, "ddp_backend")
    values = {name: value for name, value in values.items() if name not in dropped}
    values |= {
        "output_dir": str(expanded(config.output_dir) / "checkpoints"),
        "seed": config.seed,
        "data_seed": config.seed,
        "remove_unused_columns": False,  # it would drop the roles, which are no arguments of forward
        "accelerator_config": {"split_batches": True},  # each batch is one of all processes together
        "disable_tqdm": True,
        "restore_callback_states_from_checkpoint": True,  # how long early stopping has waited
        "logging_nan_inf_filter": False,  # a loss that is not finite ends the run
        **forced,
    }
    try:
        args = TrainingArguments(**_current_names(values))
    except ValueError as error:
        raise ConfigError(f"train: {' '.join(str(error).split())}") from error
    _require_rows(config, args)
    return args


def _require_rows(config: RunConfig, args: TrainingArguments) -> None:
    """A batch must have as many rows as its objective needs to learn anything."""
    for objective in config.objectives:
        kind = OBJECTIVES[objective.name]
        rows = args.per_device_train_batch_size * (
            args.world_size if getattr(objective, "gather", False) else 1
        )
        if rows < kind.least_rows or (kind.pairs_labels and rows % 2):
            even = ", and an even number" if kind.pairs_labels else ""
            raise ConfigError(
                f"train.per_device_train_batch_size: expected at least {kind.least_rows}{even}, as objective "
                f"{objective.name} compares the rows of a batch, found {rows}"
            )


def early_stopping(config: RunConfig) -> EarlyStoppingCallback | None:
    """The callback that `train.early_stopping_patience` asks for; None when it is not given."""
    given, _ = _given(config)
    patience, threshold = (given.get(name) for name in EARLY_STOPPING_KEYS)
    return None if patience is None else EarlyStoppingCallback(patience, threshold or 0.0)


def _is_one_of_several() -> bool:
    """Whether torchrun or accelerate started this process; alone, a ddp_backend is an error of accelerate's."""
    return "LOCAL_RANK" in os.environ


def _given(config: RunConfig) -> tuple[dict[str, Any], list[str]]:
    """What the `train` block says, in the types of TrainingArguments, and one line for each thing wrong with it."""
    given: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in config.train.items():
        if name in ("seed", "data_seed") and value == config.seed:
            continue
        if name in RESERVED:
            problems.append(f"train.{name}: not to be set here: {RESERVED[name]}")
        elif name in RENAMED or name not in _NAMES:
            problems.append(f"train.{name}: {_unknown(name)}")
        else:
            try:
                given[name] = _converted(name, value)
            except ValueError as error:
                problems.append(
                    f"train.{name}: expected {error}, found {describe(config.as_written(('train', name), value))}"
                )
    return given, problems


def _unknown(name: str) -> str:
    close = did_you_mean(name, _NAMES - RESERVED.keys())
    hint = f", use {RENAMED[name]}." if name in RENAMED else close
    return f"unknown name{hint} The names are those of transformers.TrainingArguments"


def _converted(name: str, value: Any) -> Any:
    """The value in the type of this argument; a ValueError says what was expected."""
    hint = _TYPES[name]
    options = alternatives(hint)
    for kind in options:
        if isinstance(kind, type) and issubclass(kind, Enum):
            allowed = [str(member.value) for member in kind]
            if value not in allowed:
                raise ValueError(_choice(str(value), allowed))
            return value
    expected = in_words(hint) + "".join(
        f" {words} {limits[name]:g}"
        for words, limits in (("of at least", AT_LEAST), ("above", ABOVE))
        if name in limits
    )
    if isinstance(value, bool) and bool not in options:
        raise ValueError(expected)
    try:
        converted = TypeAdapter(hint).validate_python(value)
    except ValidationError:
        raise ValueError(expected) from None
    if isinstance(converted, int | float):
        too_small = converted < AT_LEAST.get(name, -torch.inf) or converted <= ABOVE.get(name, -torch.inf)
        if too_small or not isfinite(converted):
            raise ValueError(expected)
        if name == "warmup_steps" and converted > 1 and converted != int(converted):
            raise ValueError("a share of all steps below 1, or a whole number of steps")
    return converted


def _choice(value: str, allowed: list[str]) -> str:
    near = [name for name in allowed if name.startswith(value)] or get_close_matches(value, allowed)
    return either(allowed) if len(allowed) <= 12 else f"a name such as {either(near[:6] or allowed[:6])}"


def _when(config: RunConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """When to evaluate and to save: each epoch, or as `train` says for one of the two; and what is best."""
    told = {
        f"{what}_strategy": given.get(f"{what}_strategy", "steps" if f"{what}_steps" in given else None)
        for what in ("eval", "save")
    }
    if not config.data.eval:
        return {"eval_strategy": "no", "save_strategy": told["save_strategy"] or "epoch"}
    evaluate = told["eval_strategy"] or (
        told["save_strategy"] if told["save_strategy"] in ("steps", "epoch") else "epoch"
    )
    save = told["save_strategy"] or (evaluate if evaluate != "no" else "epoch")
    first = config.data.eval[0]
    values = {
        "eval_strategy": evaluate,
        "save_strategy": save,
        "load_best_model_at_end": "no" not in (evaluate, save),
        "metric_for_best_model": f"eval_{first.name}_{cast(Any, TASKS[first.task]).primary_metric}",
    }
    if evaluate == "steps":
        steps = given.get("eval_steps") or given.get("save_steps") or 0.1
        values |= {"eval_steps": steps, "save_steps": steps}
    return values


def _hardware(config: RunConfig, given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The device, and the precision that engine.precision or `train` asks for."""
    use_cpu = bool(given.get("use_cpu", not torch.accelerator.is_available()))
    told = config.engine.precision
    flags = {name: given[name] for name in ("bf16", "fp16") if name in given}
    on = [name for name, flag in flags.items() if flag]
    in_train = (on[0] if on else "fp32") if flags else None
    precision = in_train or (native_precision(use_cpu) if told == "auto" else told)
    if len(on) > 1:
        problems.append("train.fp16: expected one of bf16 and fp16, found both")
    elif in_train and told not in ("auto", in_train):
        problems.append(f"engine.precision: {told}, but train says {in_train}; set one of them")
    elif precision == "fp16" and use_cpu:
        problems.append("engine.precision: fp16 needs a GPU; expected bf16, fp32 or auto on a CPU")
    values: dict[str, Any] = {"use_cpu": use_cpu, "bf16": precision == "bf16", "fp16": precision == "fp16"}
    return values | (
        {"ddp_backend": "gloo"} if use_cpu else {}
    )  # accelerate would take MPI where there is one


def _misfits(config: RunConfig, given: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """What does not fit together, each as one line: of what `train` gives, and of all values with our defaults."""
    problems = []
    evaluates = values["eval_strategy"] != "no"
    if evaluates and not config.data.eval:
        problems.append(
            f"train.eval_strategy: {values['eval_strategy']}, but there is no set under data.eval"
        )
    kept = evaluates and values["save_strategy"] in (values["eval_strategy"], "best")
    if values.get("load_best_model_at_end") and not kept:
        problems.append(
            f"train.save_strategy: expected {values['eval_strategy']}, as eval_strategy, so that the best model can be "
            f"kept, found {values['save_strategy']}; or set load_best_model_at_end: false"
        )
    problems += [
        f"train.{what}_steps: needs train.{what}_strategy: steps, found {values[f'{what}_strategy']}"
        for what in ("eval", "save")
        if f"{what}_steps" in given and values[f"{what}_strategy"] != "steps"
    ]
    by_steps = values["eval_strategy"] == values["save_strategy"] == "steps"
    if values.get("load_best_model_at_end") and by_steps and config.data.eval:
        problems += _uneven_saves(values["save_steps"], values["eval_steps"])
    if values.get("dataloader_persistent_workers") and not values.get("dataloader_num_workers"):
        problems.append(
            "train.dataloader_persistent_workers: needs train.dataloader_num_workers of at least 1"
        )
    patience, threshold = EARLY_STOPPING_KEYS
    if patience in values and not values.get("load_best_model_at_end"):
        problems.append(
            f"train.{patience}: needs a set under data.eval, an eval_strategy and load_best_model_at_end"
        )
    if threshold in values and patience not in values:
        problems.append(f"train.{threshold}: needs {patience}, the number of evaluations to wait")
    reports = values["report_to"] if isinstance(values["report_to"], list) else [values["report_to"]]
    installed: list[str] = get_available_reporting_integrations()
    for name in reports:
        if name not in ("none", "all", *installed):
            found = describe(config.as_written(("train", "report_to"), name))
            here = ", ".join(["none", *installed])
            problems.append(
                f"train.report_to: {found} is unknown or not installed (pip install it); here are: {here}"
            )
    return problems


def _uneven_saves(save: float, evaluate: float) -> list[str]:
    """Where the best model is kept, what is saved must just have been evaluated."""
    fits = (
        (save < 1) == (evaluate < 1) and isclose(save / evaluate, round(save / evaluate)) and save >= evaluate
    )
    advice = "so that the best model can be kept, or set load_best_model_at_end: false"
    return (
        []
        if fits
        else [
            f"train.save_steps: expected a multiple of train.eval_steps, {evaluate:g}, {advice}; found {save:g}"
        ]
    )


def _current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same arguments; transformers 5.2x has a new name for gradient checkpointing and warns of the old one."""
    renamed = {
        "gradient_checkpointing": "activation_checkpointing",
        "gradient_checkpointing_kwargs": "activation_checkpointing_kwargs",
    }
    current = {old: new for old, new in renamed.items() if new in _NAMES}
    return {current.get(name, name): value for name, value in values.items()}
