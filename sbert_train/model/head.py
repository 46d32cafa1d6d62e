"""The head: dense layers over the pooled vector, of every text or of queries and of documents.

N texts, I dimensions in, D dimensions out.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from sbert_train.model.layout import ACTIVATIONS, DenseLayer, Layout
from sbert_train.model.roles import side_of


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


class TwoHeads(nn.Module):
    """A head for queries and one for documents, over the pooled vectors of one backbone."""

    def __init__(self, query: nn.Sequential, document: nn.Sequential) -> None:
        super().__init__()
        self.query = query
        self.document = document

    def of(self, role: str | None) -> nn.Sequential:
        """The head of a role, or of the side `query` or `document`; ModelError where it has none."""
        return self.query if side_of(role) == "query" else self.document


Head = nn.Sequential | TwoHeads


@dataclass(frozen=True)
class HeadSpec:
    """A head to be made: `layers` dense layers, each to `dim` dimensions, with dropout before each.

    Unless it is `shared` by all texts, there are two of them, for queries and for documents.
    """

    dim: int
    activation: str = "tanh"
    dropout: float = 0.0
    layers: int = 1
    shared: bool = True


def make_head(spec: HeadSpec, inputs: int) -> Head:
    """New dense layers: (N, inputs) -> (N, spec.dim), with random orthogonal weights and no bias (Saxe et al. 2014,
    "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks").

    What the encoder knows is there from the start: a layer of as many dimensions turns the vectors and changes none of
    their cosines, but for its activation; one of fewer is a projection. Two heads begin alike, so that a text is near
    itself in both.
    """
    sizes = [inputs] + [spec.dim] * spec.layers
    layers = [Dense(i, o, spec.activation, dropout=spec.dropout) for i, o in pairwise(sizes)]
    for layer in layers:
        nn.init.orthogonal_(layer.linear.weight)
        nn.init.zeros_(layer.linear.bias)
    chain = nn.Sequential(*layers)
    return chain if spec.shared else TwoHeads(query=chain, document=deepcopy(chain))


def head_of_layout(layout: Layout) -> Head | None:
    """The head that a model folder holds."""
    if layout.document_head is not None:
        return TwoHeads(query=_from_layers(layout.head), document=_from_layers(layout.document_head))
    return _from_layers(layout.head) if layout.head else None


def layers_of_head(
    head: Head | None,
) -> tuple[tuple[DenseLayer, ...], tuple[DenseLayer, ...] | None]:
    """The weights of a head as a model folder holds them: `head` and `document_head` of a Layout.

    Dropout acts in training only and is not among them.
    """
    if isinstance(head, TwoHeads):
        return _to_layers(head.query), _to_layers(head.document)
    return () if head is None else _to_layers(head), None


def outputs_of(head: Head) -> int:
    """D."""
    chain = head.query if isinstance(head, TwoHeads) else head
    return _to_layers(chain)[-1].out_features


def describe_head(head: Head) -> str:
    """A head in words.

    >>> describe_head(make_head(HeadSpec(dim=3, layers=2), 8))
    'a head of 2 dense layers'
    >>> describe_head(make_head(HeadSpec(dim=3, shared=False), 8))
    'two heads (query, document) of 1 dense layer'
    """
    if not isinstance(head, TwoHeads):
        return f"a head of {_count(head)}"
    counts = list(dict.fromkeys((_count(head.query), _count(head.document))))
    return f"two heads (query, document) of {' and '.join(counts)}"


def _count(chain: nn.Sequential) -> str:
    return f"{len(chain)} dense layer{'s' * (len(chain) > 1)}"


def _from_layers(layers: Iterable[DenseLayer]) -> nn.Sequential:
    chain = nn.Sequential()
    for layer in layers:
        dense = Dense(layer.in_features, layer.out_features, layer.activation, bias=layer.bias is not None)
        with torch.no_grad():
            dense.linear.weight.copy_(layer.weight)
            if layer.bias is not None:
                dense.linear.bias.copy_(layer.bias)
        chain.append(dense)
    return chain


def _to_layers(chain: nn.Sequential) -> tuple[DenseLayer, ...]:
    layers = []
    for dense in chain:
        assert isinstance(dense, Dense)
        bias = None if dense.linear.bias is None else dense.linear.bias.detach()
        layers.append(DenseLayer(dense.linear.weight.detach(), bias, dense.activation_name))
    return tuple(layers)
