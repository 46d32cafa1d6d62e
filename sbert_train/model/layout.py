"""What a sentence-transformers folder says: read in both layouts, written in the one that all versions load.

A folder is a chain of modules, in this order and no other:

    Transformer   the backbone: config.json, model.safetensors, tokenizer; in the root or a sub-folder
    Pooling       tokens (T, H) of a text -> one vector (H)
    Dense ...     any number: x -> activation(W x + b); or a Router with two chains of them, for queries and documents
    Normalize     at most one, the last: x -> x / |x|

Shapes: T tokens, H hidden size of the backbone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor, nn

ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "sigmoid": nn.Sigmoid,
    "identity": nn.Identity,
}
"""Our name of an activation -> its class, which is built without arguments: a folder keeps its path alone."""

POOLING_NAMES: Mapping[str, tuple[str, str]] = {
    "mean": ("pooling_mode_mean_tokens", "mean"),
    "cls": ("pooling_mode_cls_token", "cls"),
    "max": ("pooling_mode_max_tokens", "max"),
    "mean_sqrt_len": ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    "weighted_mean": ("pooling_mode_weightedmean_tokens", "weightedmean"),
    "last": ("pooling_mode_lasttoken", "lasttoken"),
}
"""Our name of a pooling -> (its boolean in the old layout, its name in the new one)."""

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")

MODEL_CONFIG = "config_sentence_transformers.json"
ROUTER_CONFIG = "router_config.json"
TRANSFORMER_CONFIGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Where a folder of any age keeps max_seq_length and do_lower_case."""


@dataclass(frozen=True, eq=False)
class DenseLayer:
    """One layer of the head: x -> activation(weight x + bias).

    Attributes:
        weight: (out, in) float32.
        bias: (out,) float32, or None.
        activation: a name of ACTIVATIONS.
    """

    weight: Tensor
    bias: Tensor | None
    activation: str

    @property
    def in_features(self) -> int:
        return int(self.weight.shape[1])

    @property
    def out_features(self) -> int:
        return int(self.weight.shape[0])


@dataclass(frozen=True, eq=False)
class Layout:
    """All that a folder says about how a text becomes a vector, except the weights of its backbone.

    Attributes:
        backbone: the folder with config.json, the weights and the tokenizer.
        pooling: a name of POOLING_NAMES; None for a plain transformers folder, which does not say.
        head: dense layers over the pooled vector; dropout, which acts in training only, is not kept.
        document_head: those of documents, where they have a head of their own and `head` is that of queries.
        normalize: whether the vector is scaled to length 1 at the end.
        max_length: tokens of a text, special ones included; None if nothing limits them.
        prompts: name -> text put in front of a text.
        default_prompt_name: the prompt of a text that is given none.
        similarity: one of SIMILARITIES; None if the folder does not say.
        do_lower_case: whether a text is lower-cased before the tokenizer sees it.
    """

    backbone: Path
    pooling: str | None
    head: tuple[DenseLayer, ...] = ()
    document_head: tuple[DenseLayer, ...] | None = None
    normalize: bool = False
    max_length: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity: str | None = None
    do_lower_case: bool = False


def activation_path(name: str) -> str:
    """The path by which a folder names an activation, such as torch.nn.modules.activation.Tanh for tanh."""
    activation = ACTIVATIONS[name]
    return f"{activation.__module__}.{activation.__qualname__}"
