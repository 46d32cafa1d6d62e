"""Held-out rows: two sentences and how close in meaning they are, 0 to 5, known because of how they were made."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from sbert_train.data.builtin.frames import SWAPPED_SCORE, VARIED_SCORE, Frame, choose, contrasts, tell
from sbert_train.data.builtin.lexicon import content, overlap
from sbert_train.data.builtin.triplets import choices, pick

SCALE = {
    5: "the same meaning in other words",
    4: "a small thing added, left out or weakened",
    3: "the same event, but a detail that matters differs",
    2: "much the same words, but the roles are exchanged or the contrary is said",
    1: "the same topic only",
    0: "unrelated",
}
# The scores that a frame's rows get, in turn.
PLAN = (5, 2, 5, 4, 3, 5, 2, 1, 5, 4, 2, 3, 5, 4, 2, 5, 3, 0, 5, 2, 4, 1, 5, 3)
CLOSEST_CONTRAST = 0.5  # share of contrasts that are the most alike in words; the others are any


@dataclass(frozen=True)
class Pair:
    """One row of dev.csv or test.csv."""

    sentence1: str
    sentence2: str
    score: int
    phenomenon: str


def pairs(frames: Sequence[Frame], seed: int) -> list[Pair]:
    """The rows of all frames of a split, no two with the same sentences."""
    rows: list[Pair] = []
    seen: set[frozenset[str]] = set()
    for frame in frames:
        rng = random.Random(f"{seed} {frame.same[0]} {frame.tables[0].columns}")
        draws = choices(frame, rng)
        for i in range(frame.rows):
            score = PLAN[i % len(PLAN)]
            for _ in range(50):
                both = _sentences(frame, next(draws), score, frames, rng)
                if both and frozenset(both) not in seen:
                    break
            else:
                raise ValueError(f"no new pair of score {score} in 50 draws (frame {frame.same[0]!r})")
            seen.add(frozenset(both))
            first, second = both if rng.random() < 0.5 else both[::-1]
            actual = score if score not in (SWAPPED_SCORE, VARIED_SCORE) else _contrast_score(frame, score)
            name = {1: "topic", 0: "unrelated"}.get(score, frame.phenomenon)
            rows.append(Pair(first, second, actual, name))
    return rows


def _contrast_score(frame: Frame, score: int) -> int:
    """The score asked for, or the other contrast's where the frame has no contrast of that score."""
    has = {SWAPPED_SCORE: frame.other or frame.swap, VARIED_SCORE: frame.vary or frame.detail}
    return score if has[score] else SWAPPED_SCORE + VARIED_SCORE - score


def _sentences(
    frame: Frame, choice: Sequence[int], score: int, frames: Sequence[Frame], rng: random.Random
) -> tuple[str, str] | None:
    """Two sentences that stand at this score, or None where this choice of fillers has none."""
    binding = choose(frame, choice)
    own = tell(frame.same, binding, 5).sentences
    tellings = list(contrasts(frame, choice, int(rng.random() * 1000)))
    if score == 5:
        contrary = [t.sentences for t in tellings if t.score == SWAPPED_SCORE and len(t.sentences) > 1]
        if contrary and rng.random() < 0.4:
            own = pick(rng, contrary)
        first = pick(rng, own)
        return first, pick(rng, [sentence for sentence in own if sentence != first])
    first = pick(rng, own)
    if score == 4:
        return first, pick(rng, tell(frame.minor, binding, 4).sentences)
    if score == 1:
        return first, pick(rng, tell(frame.topic, binding, 1).sentences)
    if score == 0:
        return _with_stranger(first, frame, frames, rng)
    wanted = _contrast_score(frame, score)
    sentences = pick(rng, [t.sentences for t in tellings if t.score == wanted])
    closest = max(sentences, key=lambda sentence: overlap(first, sentence))
    return first, closest if rng.random() < CLOSEST_CONTRAST else pick(rng, sentences)


def _with_stranger(
    first: str, frame: Frame, frames: Sequence[Frame], rng: random.Random
) -> tuple[str, str] | None:
    """A sentence of another domain, with which it shares no content word."""
    stranger = pick(rng, frames)
    if stranger.domain == frame.domain:
        return None
    second = pick(rng, tell(stranger.same, choose(stranger, next(choices(stranger, rng))), 5).sentences)
    return None if content(first) & content(second) else (first, second)
