"""The head: dense layers over the pooled vector. N texts, I dimensions in, D dimensions out."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from sbert_train.model.layout import ACTIVATIONS, DenseLayer


class Dense(nn.Module):
    """Dropout, then x W^T + b, then an activation: (N, I) -> (N, D)."""

    def __init__(
        self, inputs: int, outputs: int, activation: str, *, bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=bias)
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        result: Tensor = self.activation(self.linear(self.dropout(vectors)))
        return result


@dataclass(frozen=True)
class HeadSpec:
    """A head to be made: `layers` dense layers, each to `dim` dimensions, with dropout before each."""

    dim: int
    activation: str = "tanh"
    dropout: float = 0.0
    layers: int = 1


def make_head(spec: HeadSpec, inputs: int) -> nn.Sequential:
    """Randomly initialised dense layers: (N, inputs) -> (N, spec.dim)."""
    sizes = [inputs] + [spec.dim] * spec.layers
    return nn.Sequential(*(Dense(i, o, spec.activation, dropout=spec.dropout) for i, o in pairwise(sizes)))


def head_from_layers(layers: Iterable[DenseLayer]) -> nn.Sequential:
    """The head that a model folder holds."""
    head = nn.Sequential()
    for layer in layers:
        dense = Dense(layer.in_features, layer.out_features, layer.activation, bias=layer.bias is not None)
        with torch.no_grad():
            dense.linear.weight.copy_(layer.weight)
            if layer.bias is not None:
                dense.linear.bias.copy_(layer.bias)
        head.append(dense)
    return head


def layers_of_head(head: nn.Sequential) -> tuple[DenseLayer, ...]:
    """The weights of a head, as a model folder holds them (dropout acts in training only and is not among them)."""
    layers = []
    for dense in head:
        assert isinstance(dense, Dense)
        bias = None if dense.linear.bias is None else dense.linear.bias.detach()
        layers.append(DenseLayer(dense.linear.weight.detach(), bias, dense.activation_name))
    return tuple(layers)
