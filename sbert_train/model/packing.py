"""How a packed batch goes through a backbone: without padding where the architecture can, else in sorted pieces.

N texts, T tokens of all texts, L longest text of a piece, D dimensions.

Three ways, with the same result:
  packed   one forward over one row of T tokens; only attention sees where a text ends
  sorted   padded sub-batches of texts of nearly equal length, within a token budget
  padded   one padded batch of all texts
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from sbert_train.data.batch import TextBatch, pack
from sbert_train.model.attention import PACKED, NotPackable, attention_dropout
from sbert_train.model.bucket_attention import in_buckets
from sbert_train.model.cpu_attention import attend_with_dropout
from sbert_train.model.flash_attention import values_and_gradients
from sbert_train.model.packed_layout import PackedLayout, group_by_width
from sbert_train.model.pooling import pool_packed, pool_padded

PROBE_LENGTHS = (3, 4, 9, 16, 17)
WAYS = ("packed", "sorted", "padded")
TOKEN_BUDGET = 16_384  # padded tokens of one sub-batch of the sorted way
RELATIVE_TOLERANCE = (
    1e-3  # float32 rounding over a deep network stays well below, a wrong mask or position far above
)


def pooled(backbone: PreTrainedModel, batch: TextBatch, pooling: str, way: str, pad_id: int) -> Tensor:
    """Run the backbone over a batch and pool each text.

    Args:
        way: a name of WAYS; `set_attention` was called with it.
        pad_id: the token id that fills padded places.

    Returns:
        (N, D) float32, in the order of the batch.
    """
    if way == "packed":
        return pool_packed(_packed_tokens(backbone, batch), batch.lengths, pooling)
    groups = _sub_batches(batch.lengths) if way == "sorted" else [(0, len(batch.lengths))]
    texts = batch.input_ids.split(list(batch.lengths))
    pieces = []
    for start, stop in groups:
        input_ids = pad_sequence(list(texts[start:stop]), batch_first=True, padding_value=pad_id)
        lengths = torch.tensor(batch.lengths[start:stop], device=input_ids.device)
        mask = (torch.arange(input_ids.shape[1], device=input_ids.device) < lengths[:, None]).long()
        tokens = backbone(input_ids=input_ids, attention_mask=mask).last_hidden_state
        pieces.append(pool_padded(tokens, mask, pooling))
    return torch.cat(pieces)


def _packed_tokens(backbone: PreTrainedModel, batch: TextBatch) -> Tensor:
    """(T, D): the last hidden state of a packed row."""
    output = backbone(
        input_ids=batch.input_ids[None],
        position_ids=(batch.position_ids + first_position(backbone))[None],
        packed_layout=PackedLayout(batch.lengths, batch.input_ids.device),
    )
    hidden: Tensor = output.last_hidden_state[0]
    return hidden


def set_attention(backbone: PreTrainedModel, way: str, padded_attention: str) -> None:
    """Give the backbone the attention function of a way.

    It stays in force until the next call, for gradient checkpointing runs the layers again in the backward pass.

    Args:
        padded_attention: transformers' name of the function for padded input, such as "sdpa".
    """
    backbone.config._attn_implementation = PACKED if way == "packed" else padded_attention


def first_position(backbone: nn.Module) -> int:
    """The position id of a text's first token: 0, or past the padding index where the positions reserve one."""
    for name, module in backbone.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            return 0 if module.padding_idx is None else module.padding_idx + 1
    return 0


def _sub_batches(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of neighbours of nearly equal length, none over TOKEN_BUDGET padded tokens unless it is one text."""
    ranges: list[tuple[int, int]] = []
    for start, stop in group_by_width(lengths):
        rows = max(1, TOKEN_BUDGET // lengths[stop - 1])
        ranges.extend((a, min(a + rows, stop)) for a in range(start, stop, rows))
    return ranges


def padding_saved(batch: TextBatch) -> float:
    """The share of places that padding would take if each role were padded to its longest text (0 to 1)."""
    lengths = torch.tensor(batch.lengths)
    padded = sum(int(lengths[texts.cpu()].max()) * texts.numel() for texts in batch.index.values())
    real = sum(int(lengths[texts.cpu()].sum()) for texts in batch.index.values())
    return 1 - real / padded if padded else 0.0


def probe_batch(backbone: PreTrainedModel, special: Collection[int], max_length: int | None) -> TextBatch:
    """A few texts of different lengths, to choose a way by.

    Args:
        special: token ids that are no words; the texts are of whatever the others stand for.
        max_length: texts that would be longer are left out.
    """
    words = [i for i in range(min(backbone.config.vocab_size, 1_000)) if i not in special]
    lengths = [n for n in PROBE_LENGTHS if max_length is None or n <= max_length] or [1]
    texts = [np.array([words[(7 * n + 3 * i) % len(words)] for i in range(n)], np.int32) for n in lengths]
    return pack(texts)[0].to(backbone.device)


def choose_way(
    backbone: PreTrainedModel,
    batch: TextBatch,
    pad_id: int,
    requested: str = "auto",
    *,
    gradients: bool = True,
) -> tuple[str, str]:
    """Try one batch packed and padded, and say which way this backbone goes.

    What is drawn by dropout cannot be compared, so it is off; attention with dropout, which is code of its own on a
    CPU, is compared keeping all. The backbone's weights, gradients and mode are left as they were.

    Args:
        batch: texts of different lengths; a few are enough.
        requested: auto, or a name of WAYS.
        gradients: whether gradients are compared besides values; they take as much memory as two more models.

    Returns:
        The way, and a clause that says why, to be printed.

    Raises:
        NotPackable: `packed` was requested and this architecture cannot.
    """
    if requested in ("sorted", "padded"):
        return requested, "as engine.packing asks"
    problem = why_not_packable(backbone, batch, pad_id, gradients=gradients)
    if problem is None:
        compared = "values and gradients" if gradients else "values"
        return "packed", f"packed and padded agree in {compared} on a first batch"
    if requested == "packed":
        raise NotPackable(problem)
    return "sorted", f"{type(backbone).__name__} cannot run packed: {problem}"


def why_not_packable(
    backbone: PreTrainedModel, batch: TextBatch, pad_id: int, *, gradients: bool = True
) -> str | None:
    """None if the packed forward equals the padded one, else what is wrong; see `choose_way`."""
    training, attention = backbone.training, backbone.config._attn_implementation
    backbone.eval()
    try:
        padded = _values_and_gradients(backbone, batch, "sorted", pad_id, gradients)
        set_attention(backbone, "packed", attention)
        packed = _values_and_gradients(backbone, batch, "packed", pad_id, gradients)
        problem = why_dropout_differs(backbone, batch) if gradients else None
    except NotPackable as reason:
        return str(reason)
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:  # whatever its forward says to a row it cannot read
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            raise  # that says nothing about the architecture; on a CPU it has no type of its own
        return f"its forward refuses a packed row ({_first_line(error)})"
    finally:
        set_attention(backbone, "padded", attention)
        backbone.train(training)
    for name, found, expected in zip(("values", "gradients"), packed, padded, strict=True):
        difference = relative_difference(found, expected)
        if not difference < RELATIVE_TOLERANCE:
            return f"packed and padded {name} differ by {difference:.1e}"
    return problem


def relative_difference(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The norm of all differences over that of all that is expected; 0 where there is nothing to compare."""
    pairs = list(zip(found, expected, strict=True))
    apart = sum(float((a - b).norm()) ** 2 for a, b in pairs)
    whole = sum(float(b.norm()) ** 2 for _, b in pairs)
    return float((apart / max(whole, 1e-24)) ** 0.5)


def _values_and_gradients(
    backbone: PreTrainedModel, batch: TextBatch, way: str, pad_id: int, gradients: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """The pooled vectors, and if wanted the gradients of a fixed scalar of them, of all parameters that are trained."""
    parameters = [p for p in backbone.parameters() if p.requires_grad and gradients]
    with torch.set_grad_enabled(bool(parameters)), torch.autocast(batch.input_ids.device.type, enabled=False):
        vectors = pooled(backbone, batch, "mean", way, pad_id)
        if not parameters:
            return [vectors], []
        weights = torch.linspace(-1, 1, vectors.numel(), device=vectors.device).view_as(vectors)
        found: Any = torch.autograd.grad((vectors * weights).sum(), parameters, allow_unused=True)
    return [vectors.detach()], [
        p.new_zeros(()) if g is None else g for p, g in zip(parameters, found, strict=True)
    ]


def why_dropout_differs(backbone: PreTrainedModel, batch: TextBatch) -> str | None:
    """None if attention with dropout, of which nothing is dropped, equals attention without; else what is wrong.

    On the layout of a batch, with random queries, keys and values; only a CPU has code of its own for it.
    """
    if batch.input_ids.device.type != "cpu" or not attention_dropout(backbone):
        return None
    layout, shape = PackedLayout(batch.lengths, batch.input_ids.device), (sum(batch.lengths), 2, 32)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for _ in range(4)]
    found, expected = (
        values_and_gradients(partial(attend, layout=layout, scaling=32**-0.5, dropout=0.0), inputs)
        for attend in (attend_with_dropout, in_buckets)
    )
    difference = relative_difference(found, expected)
    if difference < RELATIVE_TOLERANCE:
        return None
    return (
        f"attention with dropout differs from attention without by {difference:.1e} where nothing is dropped"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:120]
