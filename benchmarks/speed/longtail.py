"""Texts whose lengths have a long tail, as those of real corpora do: most are short, a few are as long as may be."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SHORTEST, LONGEST = 8, 256
"""Tokens of a text, special tokens included."""

MEDIAN, SIGMA = 40.0, 0.8
"""Of the log-normal distribution of lengths; it is cut, so the median of what remains differs a little."""

SPECIAL = 2
"""Tokens that BERT's tokenizer puts around a text."""


def lengths(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of tokens: log-normal, rounded; what falls outside of SHORTEST to LONGEST is drawn again."""
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        drawn = np.rint(rng.lognormal(np.log(MEDIAN), SIGMA, size=2 * count)).astype(np.int64)
        found = np.concatenate([found, drawn[(drawn >= SHORTEST) & (drawn <= LONGEST)]])
    return found[:count]


def longtail(words: Sequence[str], count: int, seed: int) -> list[str]:
    """Texts of words drawn evenly, one token each, so that a text has as many tokens as was drawn for it."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(words[i] for i in rng.integers(len(words), size=size - SPECIAL))
        for size in lengths(count, rng)
    ]


def whole_words(vocabulary: Path) -> list[str]:
    """The entries of a vocab.txt that are words by themselves: at least three letters of the English alphabet."""
    entries = vocabulary.read_text(encoding="utf-8").splitlines()
    return [entry for entry in entries if len(entry) > 2 and entry.isascii() and entry.isalpha()]
