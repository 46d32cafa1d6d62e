"""Two ways in which a model comes to know nothing while its loss still falls, told in a line when they begin.

N pairs of the probe.
"""

from collections.abc import Callable, Sequence

from transformers import TrainerState, TrainingArguments

from sbert_train.training.monitors import ProbeSet, Reading
from sbert_train.training.progress import Progress

CONSTANT = 0.1
"""Of the labels' standard deviation: predictions that spread less explain 1 - 0.9^2, 19 %, of their variance at the
very most, and that only if they rise with the labels without a single error."""
NEAR = 0.25
"""Of the same: how far from the label mean predictions may be to be called around it."""
SAME_DIRECTION = 0.99
"""Mean cosine of random pairs of texts from which on all of them are nearly one. A plain transformer begins at 0.4 to
0.9, a sentence encoder below 0.2."""
HARDLY_SPREAD = 0.01
"""Standard deviation of these cosines up to which nothing stands out among them."""

_DIRECTIONS = "directions"


def signs_of_collapse(reading: Reading, probe: Sequence[ProbeSet]) -> dict[str, str]:
    """What is wrong -> what was found, in words; empty where a model tells texts apart."""
    found: dict[str, str] = {}
    for one in probe:
        if one.target_mean is None or one.name not in reading.cosines:
            continue
        cosines = reading.cosines[one.name]
        mean, std = float(cosines.mean()), float(cosines.std())
        near = abs(mean - one.target_mean) < NEAR * one.target_std
        if len(cosines) > 1 and near and std < CONSTANT * one.target_std:
            found[one.name] = (
                f"data set {one.name}: predictions are nearly constant (std {std:.3f}) around the label mean "
                f"{one.target_mean:.3f}"
            )
    angles = reading.directions
    if not found and len(angles) and angles.mean() > SAME_DIRECTION and angles.std() < HARDLY_SPREAD:
        found[_DIRECTIONS] = (
            f"all texts have nearly the same embedding (mean cosine of random pairs {angles.mean():.4f}, std "
            f"{angles.std():.4f})"
        )
    return found


class CollapseWatch:
    """Says that a model has collapsed, once two readings in a row show it, and again at the end of training if it
    lasts. A model that learns may pass through such a state: new layers do, on their way from one vector to many."""

    def __init__(
        self, freeze: str | int, warn: Callable[[TrainerState, str], None], progress: Progress | None = None
    ) -> None:
        """Prepare.

        Args:
            freeze: model.freeze.
            warn: takes a line.
            progress: where a run that goes on finds what was seen and told before.
        """
        self._freeze = freeze
        self._warn = warn
        self._progress = progress or Progress()

    def look(
        self, args: TrainingArguments, state: TrainerState, reading: Reading, probe: Sequence[ProbeSet]
    ) -> None:
        """Judge a reading. That before the first step is of what nothing has trained yet: nothing is said of it."""
        found, known = signs_of_collapse(reading, probe), self._progress.collapse
        if state.global_step == 0:
            known["from_the_start"] = list(found)
            return
        seen, told = known.get("seen", []), known.get("told", [])
        last = state.global_step >= state.max_steps
        for what, finding in found.items():
            if last or (what in seen and what not in told):
                self._warn(state, f"{finding}: {self._remedy(what, args)}")
                told = [*told, what]
        known["seen"], known["told"] = list(found), [what for what in dict.fromkeys(told) if what in found]

    def _remedy(self, what: str, args: TrainingArguments) -> str:
        """What to try, with the values of now."""
        larger = what != _DIRECTIONS or what in self._progress.collapse.get("from_the_start", [])
        length = "max_steps" if args.max_steps > 0 else "num_train_epochs"
        tries = [
            f"a {'larger' if larger else 'smaller'} train.learning_rate (now {args.learning_rate:g}; "
            "`sbert-train fit --find-lr` suggests one)"
        ]
        if larger:
            tries.append(f"more train.{length} (now {getattr(args, length):g})")
        if self._freeze != "none":
            tries.append(f"model.freeze=none (now {self._freeze})")
        return f"try {', or '.join(tries)}"
