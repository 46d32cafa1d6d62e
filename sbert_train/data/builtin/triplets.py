"""Training rows: a sentence, another telling of its scene, and a sentence of much the same words that tells another."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sbert_train.data.builtin.frames import Frame, choose, contrasts, tell
from sbert_train.data.builtin.lexicon import overlap

T = TypeVar("T")

# Negatives are as near in words to the anchor as the positive is, but for this share, which are as near as can be. It
# makes up for those that find no match and are farther, so that the number of shared words tells nothing. Were most
# negatives nearer, a model would learn that shared words mean difference, and lose what it knows of similarity at large.
CLOSEST_NEGATIVE = 0.1


@dataclass(frozen=True)
class Triplet:
    """One row of train.csv."""

    anchor: str
    positive: str
    negative: str
    phenomenon: str


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """One of the options, by rng.random() alone: the only draw that Python promises to keep the same."""
    return options[int(rng.random() * len(options))]


def shuffled(rng: random.Random, options: Sequence[T]) -> list[T]:
    """The options in random order, by rng.random() alone."""
    return [option for _, option in sorted(((rng.random(), i), o) for i, o in enumerate(options))]


def choices(frame: Frame, rng: random.Random) -> Iterator[tuple[int, ...]]:
    """Rows to take from the frame's tables, over and over; each table is used up before a row of it returns."""
    decks: list[list[int]] = [[] for _ in frame.tables]
    while True:
        for deck, table in zip(decks, frame.tables, strict=True):
            if not deck:
                deck.extend(shuffled(rng, range(len(table.rows))))
        yield tuple(deck.pop() for deck in decks)


def triplets(frame: Frame, seed: int) -> list[Triplet]:
    """`frame.rows` triplets, no two of the same two scenes; every other anchor is taken from the contrast's side."""
    rng = random.Random(f"{seed} {frame.same[0]} {frame.tables[0].columns}")
    rows: list[Triplet] = []
    seen: set[frozenset[str]] = set()
    draws = choices(frame, rng)
    for _ in range(50 * frame.rows):
        if len(rows) == frame.rows:
            return rows
        choice = next(draws)
        own = tell(frame.same, choose(frame, choice), 5).sentences
        contrast = pick(rng, list(contrasts(frame, choice, int(rng.random() * 1000)))).sentences
        event = frozenset((own[0], contrast[0]))
        if event in seen:
            continue
        seen.add(event)
        if len(rows) % 2 and len(contrast) > 1:
            own, contrast = contrast, own
        rows.append(_row(frame, own, contrast, rng))
    if len(rows) < frame.rows:
        raise ValueError(f"only {len(rows)} of {frame.rows} scenes can be made (frame {frame.same[0]!r})")
    return rows


def _row(frame: Frame, own: Sequence[str], contrast: Sequence[str], rng: random.Random) -> Triplet:
    anchor = pick(rng, own)
    positive = pick(rng, [sentence for sentence in own if sentence != anchor])
    shared = 1.0 if rng.random() < CLOSEST_NEGATIVE else overlap(anchor, positive)
    negative = min(shuffled(rng, contrast), key=lambda sentence: abs(overlap(anchor, sentence) - shared))
    if negative in own:
        raise ValueError(f"a contrast tells the scene itself: {negative!r} (frame {frame.same[0]!r})")
    return Triplet(anchor, positive, negative, frame.phenomenon)
