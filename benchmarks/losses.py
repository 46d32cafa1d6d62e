"""The peer's losses under the names of our objectives."""

from collections.abc import Callable, Mapping
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from torch import nn

CLASSES = 3
"""Of SNLI: entailment, neutral, contradiction."""

LOSSES: Mapping[str, Callable[..., nn.Module]] = {
    "cosent": losses.CoSENTLoss,
    "cosine_regression": losses.CosineSimilarityLoss,
    "in_batch_negatives": losses.MultipleNegativesRankingLoss,
    "softmax": losses.SoftmaxLoss,
}
"""Name of our objective -> the peer's loss, whose options have the same names where one is given any."""


def make_loss(objective: Mapping[str, Any], model: SentenceTransformer) -> nn.Module:
    """The peer's loss for the `objective` block of our configuration."""
    options = {key: value for key, value in objective.items() if key != "name"}
    if objective["name"] == "softmax":
        options |= {"embedding_dimension": model.get_embedding_dimension(), "num_labels": CLASSES}
    return LOSSES[objective["name"]](model, **options)


def count_rows(loss: nn.Module) -> Callable[[], int]:
    """From now on count the rows of the batches that a loss is computed of; the result tells how many so far."""
    counts: list[int] = []

    def count(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        columns = inputs[0]
        counts.append(len(columns[0]["input_ids"]))

    loss.register_forward_pre_hook(count)
    return lambda: sum(counts)
