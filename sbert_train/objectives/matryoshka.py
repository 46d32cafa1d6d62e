"""Matryoshka: the first d dimensions of an embedding are to be a good embedding by themselves.

D dimensions of the embeddings, d of them that are kept.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from sbert_train.objectives.embeddings import RoleEmbeddings


class Matryoshka(nn.Module):
    """The weighted sum of a loss over embeddings that are cut to several numbers of dimensions.

        L = sum_d w_d L_d(first d dimensions, scaled to length 1)

    Kusupati et al. 2022, "Matryoshka Representation Learning", equation 1, with the scaling of sentence-transformers'
    MatryoshkaLoss: also at d = D, so that under it a dot product is a cosine.

    Attributes:
        dims, weights: one of each per loss.
        cut_reference: as in `RoleEmbeddings.truncated`.
    """

    def __init__(
        self,
        losses: Sequence[Callable[[RoleEmbeddings], Tensor]],
        dims: Sequence[int],
        weights: Sequence[float] | None = None,
        *,
        cut_reference: bool = False,
    ) -> None:
        """Put the losses together.

        Args:
            losses: one per dimension; one that learns, such as a classifier, has to be another for each.
            dims: how many dimensions each sees.
            weights: None: 1 each.
            cut_reference: the losses compare embeddings with their reference dimension by dimension
                (`embedding_distillation`), so it is cut, too. A guide stays whole: it is the better for it.

        Raises:
            ValueError: these are not of the same number, or there are none.
        """
        super().__init__()
        weights = [1.0] * len(dims) if weights is None else weights
        if not losses or len(losses) != len(dims) or len(dims) != len(weights):
            raise ValueError(
                f"expected a loss and a weight for each of at least one dimension; found {len(losses)} losses, "
                f"{len(dims)} dimensions, {len(weights)} weights"
            )
        self.losses, self.dims, self.weights = tuple(losses), tuple(dims), tuple(weights)
        self.cut_reference = cut_reference
        # Those that have weights of their own; under nn.Module's eyes they are trained, moved and saved with this one.
        self.trained = nn.ModuleList(loss for loss in losses if isinstance(loss, nn.Module))

    def forward(self, batch: RoleEmbeddings) -> Tensor:
        """A scalar.

        Raises:
            ModelError: a dimension is more than the embeddings have.
        """
        parts = [
            weight * loss(batch.truncated(dimension, cut_reference=self.cut_reference))
            for loss, dimension, weight in zip(self.losses, self.dims, self.weights, strict=True)
        ]
        return torch.stack(parts).sum()
