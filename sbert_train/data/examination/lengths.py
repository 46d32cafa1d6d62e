"""How long the texts of a set are in tokens, and how many of them a model does not read to the end.

L tokens of a text are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
from transformers import PreTrainedTokenizerBase

from sbert_train.data.text_ids import longest_read

SAMPLED_ROWS = 2_000
"""Of each set, evenly spaced: to count the tokens of texts to their end takes longer than to read L of them."""
_READ = 8  # times what `text_ids` reads of a text: that far a very long one is counted
_UNLIMITED = 100_000  # characters, where a model has no limit of length


@dataclass(frozen=True)
class Lengths:
    """Of the texts in a role, in tokens with special tokens and prompt, before any is cut.

    Attributes:
        texts: how many were counted.
        half, most, nearly_all, longest: the 50th, 95th, 99th and 100th percentile.
        truncated: the share of the texts that have more than L (0 to 1).
        is_all: whether all texts of the role were counted, not a sample.
        cut_off: the share of the texts that are so long that only their beginning was counted (0 to 1), so that the
            longest is longer still.
    """

    texts: int
    half: int
    most: int
    nearly_all: int
    longest: int
    truncated: float
    is_all: bool
    cut_off: float


def spread(rows: int, count: int) -> list[int]:
    """At most so many places, evenly spaced from the first row to the last."""
    places: list[int] = np.unique(np.linspace(0, rows - 1, min(count, rows)).astype(np.int64)).tolist()
    return places


def measure_lengths(
    rows: datasets.Dataset,
    roles: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int | None,
    prompts: Mapping[str, str],
    sampled: int = SAMPLED_ROWS,
) -> dict[str, Lengths]:
    """Role -> the lengths of its texts.

    Args:
        max_length: L, special tokens included; None for all.
        prompts: role -> text that stands before the texts of that role.
        sampled: rows to count at most.
    """
    places = spread(len(rows), sampled)
    chosen = rows.select(places)
    most_read = _READ * (longest_read(max_length) or _UNLIMITED // _READ)
    found = {}
    for role in roles:
        texts = [text for one in chosen[role][:] for text in ([one] if isinstance(one, str) else one)]
        cut_off = sum(len(text) > most_read for text in texts) / len(texts)
        read = [prompts.get(role, "") + text[:most_read] for text in texts]
        lengths = np.array([len(ids) for ids in _token_ids(read, tokenizer)])
        half, most, nearly_all, longest = np.percentile(lengths, [50, 95, 99, 100], method="higher")
        found[role] = Lengths(
            texts=len(texts),
            half=int(half),
            most=int(most),
            nearly_all=int(nearly_all),
            longest=int(longest),
            truncated=0.0 if max_length is None else float((lengths > max_length).mean()),
            is_all=len(places) == len(rows),
            cut_off=cut_off,
        )
    return found


def _token_ids(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(
        list(texts),
        truncation=False,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # of texts that are longer than the model takes, which is what is counted here
    )["input_ids"]
    return ids
