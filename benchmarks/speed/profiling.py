"""Where the time of training steps goes: torch's profiler on, by the kind of operator.

The time of an operator is its own, without that of the operators it calls; on a GPU that of its kernels.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

WARM_UP = 1
"""Steps before the profile begins: the first sets things up."""

KINDS: Mapping[str, Sequence[str]] = {
    "weights' products": ("aten::mm", "aten::addmm", "aten::linear", "aten::matmul"),
    "attention": (
        "scaled_dot_product",
        "flash_attention",
        "varlen_attn",
        "aten::bmm",
        "_Attention",
        "softmax",
    ),
    "dropout": ("dropout", "_Dropout", "bernoulli"),
    "activation": ("gelu",),
    "layer norm": ("layer_norm",),
    "optimizer": ("adamw", "Optimizer.", "vector_norm", "zero_grad"),
}
"""Kind -> parts of the names of its operators; the first kind that has one counts."""
OTHER, OUTSIDE = "other operators", "outside of operators"


class StepProfile(TrainerCallback):
    """Profiles the steps after the first ones, from the end of one to the end of the last."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._start = 0.0
        self.seconds: dict[str, float] = {}
        """Kind -> seconds of all profiled steps together, once they are over."""

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        cuda = torch.cuda.is_available()
        if state.global_step == WARM_UP:
            activities = [ProfilerActivity.CPU, *((ProfilerActivity.CUDA,) if cuda else ())]
            self._profile = profile(activities=activities, acc_events=True)
            self._profile.__enter__()
            self._start = time.perf_counter()
        elif state.global_step == self._steps:
            if cuda:
                torch.cuda.synchronize()
            seconds = time.perf_counter() - self._start
            self._profile.__exit__(None, None, None)
            operators = [one for one in self._profile.key_averages() if one.device_type == DeviceType.CPU]
            self.seconds = by_kind(((str(one.key), _own_seconds(one, cuda)) for one in operators), seconds)


def by_kind(operators: Iterable[tuple[str, float]], seconds: float) -> dict[str, float]:
    """Seconds by kind of operator; what is left of all seconds is outside of operators: Python, waiting.

    >>> by_kind([("aten::mm", 2.0), ("aten::gelu_backward", 0.5), ("aten::copy_", 0.25)], 3.0)["other operators"]
    0.25
    """
    found = dict.fromkeys([*KINDS, OTHER], 0.0)
    for name, own in operators:
        found[kind_of(name)] += own
    return {**found, OUTSIDE: max(0.0, seconds - sum(found.values()))}


def kind_of(operator: str) -> str:
    """The kind of an operator by its name.

    >>> [kind_of(name) for name in ("aten::addmm", "aten::_softmax_backward_data", "aten::copy_")]
    ["weights' products", 'attention', 'other operators']
    """
    return next((kind for kind, parts in KINDS.items() if any(part in operator for part in parts)), OTHER)


def _own_seconds(event: Any, cuda: bool) -> float:
    micro: float = event.self_device_time_total if cuda else event.self_cpu_time_total
    return micro / 1e6
