"""The exact gradient of a large batch in the memory of a small one: texts are encoded in micro-batches, twice.

N texts of a batch, T tokens of them, H dimensions of the backbone.

Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", section 3: encode all
micro-batches and keep the vectors alone; take the loss over all vectors and its gradients with respect to them; encode
each micro-batch again, now with its graph, and send its part of the gradients back through it. That is what torch's
checkpointing does with a micro-batch as the checkpointed function, one after the other, with the random state of
dropout and the precision as they were; as one graph, so that any objective, gradient accumulation and several
processes go on top unchanged.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sbert_train.data.batch import TextBatch


def pooled_in_pieces(pool: Callable[[TextBatch], Tensor], batch: TextBatch, tokens: int | None) -> Tensor:
    """(N, H): what `pool` gives for a batch, micro-batch by micro-batch.

    With gradients, no more than one micro-batch's activations are in memory, at the price of a second forward; a batch
    that fits into one micro-batch has neither the gain nor the price.

    Args:
        tokens: of a micro-batch, at most, unless a single text has more; None for the batch as it is.
    """
    pieces = [batch] if tokens is None else micro_batches(batch, tokens)
    if len(pieces) == 1 or not torch.is_grad_enabled():
        return torch.cat([pool(piece) for piece in pieces])

    def pool_ids(input_ids: Tensor, piece: TextBatch) -> Tensor:
        return pool(replace(piece, input_ids=input_ids))

    # The ids stand alone as an argument, for by its tensors checkpoint finds out whose random state to keep.
    return torch.cat(
        [
            checkpoint(pool_ids, piece.input_ids, piece, use_reentrant=False, preserve_rng_state=True)
            for piece in pieces
        ]
    )


def micro_batches(batch: TextBatch, tokens: int) -> list[TextBatch]:
    """The texts of a batch in its order, in pieces without rows: of at most so many tokens, or of one text.

    As the texts of a batch are sorted by length, so are those of each piece, and the pieces among themselves.
    """
    ranges: list[tuple[int, int]] = []
    first = total = 0
    for place, length in enumerate(batch.lengths):
        if place > first and total + length > tokens:
            ranges.append((first, place))
            first, total = place, 0
        total += length
    ranges.append((first, len(batch.lengths)))

    lengths = [batch.lengths[a:b] for a, b in ranges]
    sizes = [sum(own) for own in lengths]
    parts = zip(
        batch.input_ids.split(sizes),
        batch.position_ids.split(sizes),
        lengths,
        batch.text_keys.split([len(own) for own in lengths]),
        strict=True,
    )
    return [TextBatch(*part, index={}) for part in parts]
