"""What becomes of the embedding space while a run trains: a few figures of a fixed sample of training rows.

N rows of the probe, D dimensions.

The sample is drawn by a seed of its own, so that runs on the same data are measured on the same rows. It is embedded
as evaluations embed, without dropout and without a random number, so that training goes on as if nobody had looked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
from numpy.typing import NDArray
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sbert_train.data.sources import LoadedSet
from sbert_train.evaluation.encoding import Encode, encode_distinct
from sbert_train.evaluation.geometry import (
    alignment,
    cosines_of_pairs,
    effective_rank,
    false_negatives,
    uniformity,
)
from sbert_train.evaluation.metrics import cosine
from sbert_train.objectives.registry import ObjectiveSpec
from sbert_train.training.objectives import RunObjectives
from sbert_train.training.run_log import MONITOR

PROBE_ROWS = 128
LEAST_ROWS = 8
"""Of each set, where it has so many."""
SEED = 20200520
HIGH_SCORE = 0.8
"""A pair above this share of the range of its set's scores is a positive, as Gao et al. 2021 (SimCSE, section 3) take
pairs of STS-B with a score above 4 of 5."""
SIDES = (("anchor", "sentence1"), ("positive", "sentence2"))


@dataclass(frozen=True)
class ProbeSet:
    """Some rows of a training set.

    Attributes:
        left, right: N texts each; right is empty where the objective has no pairs.
        roles: of left and right.
        positive: (N,) bool, which rows are pairs that belong together.
        batch_is_negatives: whether the other rows of a batch are the negatives of a row.
        target_mean, target_std: of the scores of the whole set, where similarities are trained to equal them.
    """

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    roles: tuple[str, ...]
    positive: NDArray[np.bool_]
    batch_is_negatives: bool = False
    target_mean: float | None = None
    target_std: float = 0.0


@dataclass(frozen=True)
class Reading:
    """What was measured of the probe once.

    Attributes:
        figures: name -> value, those that there are.
        cosines: set name -> (N,) similarities of its pairs.
        directions: (N,) cosines of random pairs of texts, of all sets.
    """

    figures: Mapping[str, float]
    cosines: Mapping[str, NDArray[np.float64]]
    directions: NDArray[np.float64]


Judge = Callable[[TrainingArguments, TrainerState, Reading, Sequence[ProbeSet]], None]


def make_probe(sets: Sequence[LoadedSet], objectives: RunObjectives) -> tuple[ProbeSet, ...]:
    """About PROBE_ROWS rows, of each set in proportion to its size but LEAST_ROWS at least, as far as it has them."""
    total = sum(len(one.rows) for one in sets)
    rng = np.random.default_rng(SEED)
    probe = []
    for number, one in enumerate(sets):
        size = len(one.rows)
        wanted = min(size, max(LEAST_ROWS, round(PROBE_ROWS * size / total)))
        chosen = np.sort(rng.choice(size, size=wanted, replace=False))
        probe.append(_probe_set(one.name, one.rows, chosen, objectives.spec_of(number)))
    return tuple(probe)


def _probe_set(name: str, rows: datasets.Dataset, chosen: NDArray[np.int64], spec: ObjectiveSpec) -> ProbeSet:
    used = spec.roles_of(name, rows.column_names)
    sides = (next((role for role in side if role in used), None) for side in SIDES)
    roles = tuple(filter(None, sides)) or used[:1]  # a teacher may be followed on any texts
    picked = rows.select(chosen.tolist())
    texts = [tuple(_first(text) for text in picked[role][:]) for role in roles]
    numbers = "score" if "score" in used else "label" if spec.kind.labels == "binary" else None
    mean, std, positive = None, 0.0, np.full(len(chosen), len(roles) > 1 and "anchor" in roles)
    if numbers is not None and "sentence1" in roles:
        values = np.asarray(rows[numbers][:], dtype=np.float64)
        if spec.name == "cosine_regression":
            mean, std = float(values.mean()), float(values.std())
        positive = values[chosen] > values.min() + HIGH_SCORE * (values.max() - values.min())
    return ProbeSet(
        name=name,
        left=texts[0],
        right=texts[1] if len(texts) > 1 else (),
        roles=roles,
        positive=positive,
        batch_is_negatives=spec.kind.batch_is_negatives,
        target_mean=mean,
        target_std=std,
    )


def _first(text: Any) -> str:
    return text if isinstance(text, str) else text[0]


def read_probe(probe: Sequence[ProbeSet], encode: Encode) -> Reading:
    """Embed the probe and measure it.

    Raises:
        EvaluationError: an embedding is not finite.
    """
    embedded = _embed(probe, encode)
    cosines: dict[str, NDArray[np.float64]] = {}
    near: list[tuple[float, int]] = []
    wrong: list[tuple[float, int]] = []
    for one, (left, right) in zip(probe, embedded, strict=True):
        if not one.right:
            continue
        cosines[one.name] = cosine(left.astype(np.float64), right.astype(np.float64))
        if one.positive.any():
            near.append((alignment(left[one.positive], right[one.positive]), int(one.positive.sum())))
        share = false_negatives(left, right, _same(one)) if one.batch_is_negatives else None
        if share is not None:
            wrong.append((share, len(one.left)))
    clouds = [cloud for cloud in _clouds(probe, embedded) if len(cloud) > 1]
    pairs = [cosines_of_pairs(cloud) for cloud in clouds]
    sizes = [len(cloud) for cloud in clouds]
    figures = {
        "alignment": _mean(near),
        "uniformity": _mean(list(zip(map(uniformity, clouds), sizes, strict=True))),
        "mean_cosine": _mean([(float(found.mean()), n) for found, n in zip(pairs, sizes, strict=True)]),
        "effective_rank": _mean(list(zip(map(effective_rank, clouds), sizes, strict=True))),
        "similarity_std": float(np.concatenate(list(cosines.values())).std()) if cosines else None,
        "false_negatives": _mean(wrong),
    }
    return Reading(
        figures={MONITOR + name: value for name, value in figures.items() if value is not None},
        cosines=cosines,
        directions=np.concatenate(pairs) if pairs else np.empty(0),
    )


def _mean(weighed: Sequence[tuple[float, int]]) -> float | None:
    total = sum(weight for _, weight in weighed)
    return sum(value * weight for value, weight in weighed) / total if total else None


def _embed(
    probe: Sequence[ProbeSet], encode: Encode
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """The embeddings of left and right of each set, the texts of a role of all sets in one go."""
    texts: dict[str, list[str]] = {}
    for one in probe:
        for role, side in zip(one.roles, (one.left, one.right), strict=False):
            texts.setdefault(role, []).extend(side)
    rows = {role: iter(encode_distinct(encode, found, role)) for role, found in texts.items()}

    def take(role: str, count: int) -> NDArray[np.float32]:
        return np.stack([next(rows[role]) for _ in range(count)])

    taken = [[take(role, len(one.left)) for role in one.roles] for one in probe]
    return [(found[0], found[-1]) for found in taken]


def _clouds(
    probe: Sequence[ProbeSet], embedded: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
) -> list[NDArray[np.float32]]:
    """The embeddings of the different texts of each side: texts of one side belong to different rows."""
    clouds = []
    for side in range(2):
        found: dict[str, NDArray[np.float32]] = {}
        for one, vectors in zip(probe, embedded, strict=True):
            found |= dict(zip((one.left, one.right)[side], vectors[side], strict=False))
        if found:
            clouds.append(np.stack(list(found.values())))
    return clouds


def _same(one: ProbeSet) -> NDArray[np.bool_]:
    """(N, N): the positive of row j is the positive or the anchor of row i."""
    left, right = np.array(one.left, dtype=object), np.array(one.right, dtype=object)
    return np.asarray((right[:, None] == right) | (left[:, None] == right), dtype=bool)


class Monitors(TrainerCallback):
    """Measures a probe before training, with every evaluation, and at the end; where a run has no evaluations, at the
    end of each epoch."""

    def __init__(
        self,
        probe: Sequence[ProbeSet],
        encode: Encode,
        log: Callable[[dict[str, float]], None],
        judge: Judge | None = None,
    ) -> None:
        """Prepare.

        Args:
            encode: the model as evaluations ask it; every process takes part.
            log: Trainer's.
            judge: is shown each reading.
        """
        self._probe = tuple(probe)
        self._encode = encode
        self._log = log
        self._judge = judge
        self._measured_at = -1

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Before the first step of a run; one that goes on has it in its log."""
        if state.global_step == 0:
            self._measure(args, state)
        self._measured_at = state.global_step

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._measure(args, state)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Where no evaluation comes now, and none will come, or would have."""
        last = control.should_training_stop or state.global_step >= state.max_steps
        if control.should_evaluate or state.global_step == self._measured_at:
            return
        if last or args.eval_strategy == "no":
            logs_now = control.should_log  # which writing to the log takes for done
            self._measure(args, state)
            control.should_log = logs_now

    def _measure(self, args: TrainingArguments, state: TrainerState) -> None:
        self._measured_at = state.global_step
        reading = read_probe(self._probe, self._encode)
        self._log(dict(reading.figures))
        if self._judge is not None:
            self._judge(args, state, reading, self._probe)
