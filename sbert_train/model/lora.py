"""Low-rank adapters in a backbone: a linear layer W x becomes W x + (alpha / r) B A x, of which A and B alone train.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1. B begins as zero, so that the first
embeddings are those of the base. The adapters are peft's, put in place and taken out in memory alone: peft reads no
file here. They are part of the encoder's state dict, and a saved model has them merged.

I inputs and O outputs of a linear layer, r rank: A (r, I), B (O, r).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from sbert_train.errors import ModelError
from sbert_train.model.backbone import layers_of
from sbert_train.model.freezing import freeze_pooler

if TYPE_CHECKING:
    from peft.tuners.lora import Linear as AdaptedLinear

_NAME = "default"  # peft's own for an adapter that is the only one


@dataclass(frozen=True)
class LoraSpec:
    """Adapters to be made.

    Attributes:
        r: the rank, at least 1.
        alpha: B A is scaled by alpha / r.
        dropout: share of the inputs of A that is dropped in training.
        target_modules: names of linear layers, or ends of their paths; None: those that peft names for the
            architecture, and where it names none all linear layers of the transformer layers.
    """

    r: int = 16
    alpha: int = 32
    dropout: float = 0.05
    target_modules: Sequence[str] | None = None


@dataclass(frozen=True)
class Adapters:
    """Adapters that are in place.

    Attributes:
        r: their rank.
        layers: the paths of the linear layers that have one, within the backbone.
        choice: a clause that says who chose them.
    """

    r: int
    layers: tuple[str, ...]
    choice: str

    def __str__(self) -> str:
        names = ", ".join(sorted({path.rpartition(".")[2] for path in self.layers}))
        return f"LoRA of rank {self.r} in {len(self.layers)} linear layers ({names}: {self.choice})"


def add_adapters(backbone: PreTrainedModel, spec: LoraSpec) -> Adapters:
    """Put adapters into a backbone, of which nothing else trains from now on.

    Raises:
        ModelError: peft is not installed, or a target module is no linear layer that an embedding depends on.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ModelError(f'model.lora needs peft: pip install "sbert-train[lora]" ({error})') from error
    layers, choice = _choose_layers(backbone, spec.target_modules)
    config = LoraConfig(
        r=spec.r, lora_alpha=spec.alpha, lora_dropout=spec.dropout, target_modules=list(layers), bias="none"
    )
    inject_adapter_in_model(config, backbone, _NAME)
    return Adapters(spec.r, layers, choice)


def merged_state(backbone: PreTrainedModel, adapters: Adapters) -> dict[str, Tensor]:
    """The weights of a backbone with its adapters merged, by the names that they have without; it stays as it is."""
    weights = dict(backbone.state_dict())
    for path, layer in _adapted(backbone, adapters):
        own = {name: weights.pop(name) for name in list(weights) if name.startswith(f"{path}.")}
        base = f"{path}.base_layer."
        weights |= {f"{path}.{name.removeprefix(base)}": own[name] for name in own if name.startswith(base)}
        weights[f"{path}.weight"] = weights[f"{path}.weight"] + layer.get_delta_weight(_NAME).detach()
    return weights


def merge_adapters(backbone: PreTrainedModel, adapters: Adapters) -> None:
    """Add adapters to the weights that they adapt, and take them out; all weights train again."""
    merged = merged_state(backbone, adapters)
    for path, layer in list(_adapted(backbone, adapters)):
        linear = cast(nn.Linear, layer.get_base_layer())
        with torch.no_grad():
            linear.weight.copy_(merged[f"{path}.weight"])
        backbone.set_submodule(path, linear)
    del backbone.peft_config
    backbone.requires_grad_(True)
    freeze_pooler(backbone)


def _adapted(backbone: PreTrainedModel, adapters: Adapters) -> "Iterator[tuple[str, AdaptedLinear]]":
    for path in adapters.layers:
        yield path, cast("AdaptedLinear", backbone.get_submodule(path))


def _choose_layers(
    backbone: PreTrainedModel, target_modules: Sequence[str] | None
) -> tuple[tuple[str, ...], str]:
    """The paths of the linear layers to adapt, and a clause that says who chose them."""
    linear = _linear_layers(backbone)
    if target_modules is not None:
        missing = [name for name in target_modules if not any(_is_named(path, name) for path in linear)]
        if missing or not target_modules:
            names = sorted({path.rpartition(".")[2] for path in linear})
            raise ModelError(
                f"model.lora.target_modules: {type(backbone).__name__} has no linear layer named "
                f"{', '.join(missing) or '(none is given)'}; it has: {', '.join(names) or 'none at all'}"
            )
        chosen = [path for path in linear if any(_is_named(path, name) for name in target_modules)]
        return tuple(chosen), "as model.lora.target_modules names them"
    model_type = backbone.config.model_type
    if by_peft := _layers_by_peft(model_type, linear):
        return tuple(by_peft), f"what peft adapts in {model_type}"
    stack = layers_of(backbone)
    inside = {id(module) for layer in stack or [] for module in layer.modules()}
    chosen = [path for path, module in linear.items() if id(module) in inside]
    if not chosen:
        raise ModelError(
            f"model.lora: {type(backbone).__name__} has no linear layers that adapters could go into; leave it out"
        )
    return tuple(chosen), "all of the transformer layers"


def _linear_layers(backbone: PreTrainedModel) -> dict[str, nn.Linear]:
    """Path -> linear layer, of all that an embedding depends on: the next-sentence pooler is none of them."""
    return {
        path: module
        for path, module in backbone.named_modules()
        if isinstance(module, nn.Linear) and not path.startswith("pooler.")
    }


def _is_named(path: str, name: str) -> bool:
    return path == name or path.endswith(f".{name}")


def _layers_by_peft(model_type: str, linear: Mapping[str, nn.Linear]) -> list[str]:
    """What peft adapts by default in an architecture: a list of names, or a pattern of paths; often nothing."""
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING

    names = TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(model_type, [])
    if isinstance(names, str):
        return [path for path in linear if re.fullmatch(names, path)]
    return [path for path in linear if any(_is_named(path, name) for name in names)]
