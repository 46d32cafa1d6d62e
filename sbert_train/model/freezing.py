"""What does not train: all of the backbone, its token embeddings, or these and its lowest layers."""

from torch import nn
from transformers import PreTrainedModel

from sbert_train.errors import ModelError
from sbert_train.model.backbone import layers_of


def freeze(backbone: PreTrainedModel, what: str | int) -> None:
    """Keep some weights of a backbone as they are.

    Args:
        what: none, backbone, embeddings, or an integer n: the embeddings and the lowest n layers.

    Raises:
        ModelError: the backbone has fewer than n layers or no list of them.
    """
    if what == "none":
        return
    if what == "backbone":
        backbone.requires_grad_(False)
        return
    backbone.get_input_embeddings().requires_grad_(False)
    for name, module in backbone.named_modules():
        if name == "embeddings":
            module.requires_grad_(False)
    if what == "embeddings":
        return
    layers = layers_of(backbone)
    if layers is None:
        raise ModelError(
            f"model.freeze: {type(backbone).__name__} has no list of layers; use none, embeddings or backbone"
        )
    if int(what) > len(layers):
        raise ModelError(f"model.freeze is {what}, but this backbone has {len(layers)} layers")
    for layer in layers[: int(what)]:
        layer.requires_grad_(False)


def freeze_pooler(backbone: PreTrainedModel) -> None:
    """Keep the next-sentence pooler of BERT and its kin as it is, for it is not part of an embedding.

    It stays in the saved model, as transformers would warn of its absence, but an optimizer or DDP must not wait for
    its gradient.
    """
    pooler = getattr(backbone, "pooler", None)
    if isinstance(pooler, nn.Module):
        pooler.requires_grad_(False)
