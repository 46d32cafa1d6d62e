"""Compiled layers: what lies between two attentions of a packed forward, fused by torch.compile.

T tokens of all texts, D dimensions.

Only the parts of a layer in which no token sees another are compiled: the feed-forward block, and an attention's output
projection with its residual and normalisation. They take (1, T, D) with whatever T, so that one compilation serves all
batches; and they are the same code in every layer, so that it serves all layers. Attention itself, which goes by the
lengths of a batch, stays as it is.

No module is wrapped or replaced: a part gets a `forward` of its own, so that all weights keep their names. It is used
in training mode alone; evaluation, encoding and export run what they always ran. Random numbers are drawn as without
compilation, so that dropout drops the same values and one seed gives one result, compiled or not.
"""

import time
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from sbert_train.data.batch import TextBatch
from sbert_train.errors import ModelError
from sbert_train.model.backbone import layers_of
from sbert_train.model.dropout import FastDropout
from sbert_train.model.packing import pooled

FLOAT32_TOLERANCE = (
    1e-3  # relative; as between packed and padded: rounding stays well below, a mistake far above
)
HALF_TOLERANCE = 5e-2  # fused code rounds to 16 bits less often than what it replaces, at 4e-3 each time

Forward = Callable[..., Any]


def compile_layers(
    backbone: PreTrainedModel, batch: TextBatch, pad_id: int, dtype: torch.dtype | None = None
) -> str:
    """Compile a backbone that goes packed, and check a training step of a batch against the same step uncompiled.

    Args:
        batch: some texts to compile and to check with; any number and lengths will do in training.
        pad_id: as for `pooled`.
        dtype: of autocast in training; None for none.

    Returns:
        A clause that says what was compiled and how long it took, to be printed.

    Raises:
        ModelError: it cannot be compiled here, or comes out different; the backbone is then as it was.
    """
    parts = parts_between_attentions(backbone, batch, pad_id)
    if not parts:
        raise _refusal(
            f"the layers of {type(backbone).__name__} have no part that stands apart from attention"
        )
    training = backbone.training
    backbone.train()
    try:
        expected = _step(backbone, batch, pad_id, dtype)
        began = time.perf_counter()
        _require_active()
        _install(parts)
        found = _step(backbone, batch, pad_id, dtype)
        seconds = time.perf_counter() - began
        _require_equal(found, expected, FLOAT32_TOLERANCE if dtype is None else HALF_TOLERANCE)
    except BaseException as error:
        remove_compiled(backbone)
        if isinstance(error, ModelError | torch.OutOfMemoryError) or not isinstance(error, Exception):
            raise
        # Each compiler below torch has exceptions of its own, and none is documented.
        needs = "a C++ compiler such as g++ and Python's header files" if batch.input_ids.is_cpu else "Triton"
        raise _refusal(f"torch.compile fails here ({_said(error)}); it needs {needs}") from error
    finally:
        backbone.train(training)
    return f"{len(parts)} parts of {len(layers_of(backbone) or [])} layers compiled in {seconds:.0f} s"


def remove_compiled(backbone: nn.Module) -> None:
    """Take the compiled forwards out again."""
    for module in backbone.modules():
        if is_compiled(module) or isinstance(module, FastDropout):
            module.__dict__.pop("forward", None)


def is_compiled(module: nn.Module) -> bool:
    """Whether a module has a forward that is compiled in training mode."""
    return isinstance(getattr(module.__dict__.get("forward"), "__func__", None), _Compiled)


def parts_between_attentions(backbone: PreTrainedModel, batch: TextBatch, pad_id: int) -> list[nn.Module]:
    """The largest modules of the layers that a packed forward runs without telling them where texts end.

    Single operations, such as a projection of its own, are left out: there is nothing to fuse.
    """
    sees_texts: dict[nn.Module, bool] = {}

    def note(module: nn.Module, _: Any, kwargs: dict[str, Any]) -> None:
        sees_texts[module] = "packed_layout" in kwargs

    layers = layers_of(backbone) or nn.ModuleList()
    hooks = [module.register_forward_pre_hook(note, with_kwargs=True) for module in layers.modules()]
    training = backbone.training
    try:
        with torch.no_grad():
            pooled(backbone.eval(), batch, "mean", "packed", pad_id)
    finally:
        backbone.train(training)
        for hook in hooks:
            hook.remove()

    def largest(module: nn.Module) -> list[nn.Module]:
        if sees_texts.get(module) is False:
            return [module] if any(True for _ in module.children()) else []
        return [part for child in module.children() for part in largest(child)]

    return list(dict.fromkeys(part for layer in layers for part in largest(layer)))


_plain_dropout = torch.compiler.disable(FastDropout.forward)
"""For a CPU, where masks come from numpy: code that is compiled has to stop for them, and is told so beforehand."""


class _Compiled:
    """The forward of a class of modules: compiled in training mode, plain in evaluation."""

    __name__ = "forward"  # by which pickle finds the plain forward of the class in another process

    def __init__(self, plain: Forward) -> None:
        self.plain = plain
        # With dropout of its own, compiled code would drop other values than eager code of the same seed.
        self.compiled = torch.compile(plain, dynamic=True, options={"fallback_random": True})

    def __call__(self, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        # Not by whether there are gradients: a forward that is repeated to have them must be the same.
        return (self.compiled if module.training else self.plain)(module, *args, **kwargs)


def _install(parts: Iterable[nn.Module]) -> None:
    """Give each part its compiled forward: one for all of a class, so that equal parts share what is compiled."""
    of_class: dict[type[nn.Module], _Compiled] = {}
    for part in parts:
        compiled = of_class.setdefault(type(part), _Compiled(type(part).forward))
        part.__dict__["forward"] = MethodType(compiled, part)
        on_cpu = all(weights.is_cpu for weights in part.parameters())
        for dropout in (module for module in part.modules() if isinstance(module, FastDropout)):
            if on_cpu and dropout.p > 0:
                dropout.__dict__["forward"] = MethodType(_plain_dropout, dropout)


def _require_active() -> None:
    """Switched off by an environment variable, torch.compile does nothing at all and says nothing."""

    def traced(x: Tensor) -> Tensor:
        return x + 1 if torch.compiler.is_compiling() else x

    if not torch.compile(traced, backend="eager")(torch.zeros(()).cpu()):
        raise _refusal("torch.compile is switched off (see TORCH_COMPILE_DISABLE in the environment)")


def _step(
    backbone: PreTrainedModel, batch: TextBatch, pad_id: int, dtype: torch.dtype | None
) -> tuple[Tensor, Tensor]:
    """The pooled vectors of a training step with dropout as configured, and all gradients of a fixed scalar of them."""
    device = batch.input_ids.device
    with torch.random.fork_rng(enabled=True), torch.enable_grad():
        torch.manual_seed(0)
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            vectors = pooled(backbone, batch, "mean", "packed", pad_id).float()
        weights = torch.linspace(-1, 1, vectors.numel(), device=device).view_as(vectors)
        trained = [p for p in backbone.parameters() if p.requires_grad]
        gradients: Any = torch.autograd.grad((vectors * weights).sum(), trained, allow_unused=True)
    return vectors.detach(), torch.cat([g.flatten() for g in gradients if g is not None])


def _require_equal(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], tolerance: float) -> None:
    for name, a, b in zip(("values", "gradients"), found, expected, strict=True):
        difference = float((a - b).norm() / b.norm().clamp_min(1e-12)) if a.shape == b.shape else float("inf")
        if not difference < tolerance:
            raise _refusal(f"compiled and uncompiled {name} of a first batch differ by {difference:.1e}")


def _refusal(reason: str) -> ModelError:
    return ModelError(f"engine.compile is true, but {reason}; set it to false")


def _said(error: Exception) -> str:
    """The line of a compiler's message that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    telling = [line for line in lines if "error: " in line] or [
        line for line in lines if "raised:" not in line
    ]
    return (telling or lines)[0][:160]
