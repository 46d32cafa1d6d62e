"""The objectives of a run: what each data set is trained towards, and what the model is asked for that."""

from collections.abc import Sequence
from dataclasses import dataclass

from sbert_train.config import Objective as ObjectiveConfig
from sbert_train.config import RunConfig
from sbert_train.errors import ConfigError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.objectives.registry import Objective, ObjectiveSpec, objective_spec


@dataclass(frozen=True)
class RunObjectives:
    """The distinct objectives of a run, and which of them each data set has."""

    specs: tuple[ObjectiveSpec, ...]
    of_set: tuple[int, ...]
    """For each training set the number of its objective."""

    def spec_of(self, number: int) -> ObjectiveSpec:
        """The objective of a training set."""
        return self.specs[self.of_set[number]]

    @property
    def matryoshka_dims(self) -> tuple[int, ...]:
        """All dimensions that some objective of the run trains, largest first."""
        return tuple(sorted({dim for spec in self.specs for dim in spec.dims or ()}, reverse=True))


def run_objectives(config: RunConfig) -> RunObjectives:
    """The objectives of a configuration; sets that name the same one share it.

    Raises:
        ConfigError: two different softmax objectives, of which a model folder could keep one only.
    """
    specs = [objective_spec(**one.model_dump()) for one in config.objectives]
    distinct = [spec for i, spec in enumerate(specs) if spec not in specs[:i]]
    if sum(spec.name == "softmax" for spec in distinct) > 1:
        raise ConfigError(
            "data.train: the sets have softmax objectives with different options; a model keeps one classifier, so "
            "give them the same"
        )
    return RunObjectives(tuple(distinct), tuple(distinct.index(spec) for spec in specs))


def similarity_of(objective: ObjectiveConfig) -> str:
    """What embeddings trained towards it are to be compared with, see `layout.SIMILARITIES`."""
    asked = getattr(objective, "similarity", getattr(objective, "distance", "cosine"))
    return "cosine" if asked == "mse" else str(asked)


def require_dimensions(objectives: RunObjectives, encoder: SentenceEncoder) -> None:
    """Raise ConfigError where a Matryoshka dimension is beyond the model's."""
    most = max(objectives.matryoshka_dims, default=0)
    if most > encoder.dimension:
        raise ConfigError(
            f"objective.matryoshka_dims: expected at most {encoder.dimension}, the dimensions of the model, "
            f"found {most}"
        )


def require_trainable(objectives: RunObjectives, encoder: SentenceEncoder) -> None:
    """Raise ConfigError where all of the encoder is frozen and no objective has weights."""
    if any(weights.requires_grad for weights in encoder.parameters()):
        return
    # Whether an objective has weights does not depend on how many classes there are.
    tried = build_objectives(objectives, encoder, [2] * len(objectives.specs))
    if not any(list(one.parameters()) for one in tried):
        raise ConfigError(
            "model.freeze: nothing is left to train, as there is no head and the objective has no weights; freeze "
            "less, or add model.head"
        )


def build_objectives(
    objectives: RunObjectives, encoder: SentenceEncoder, classes: Sequence[int | None]
) -> list[Objective]:
    """The losses, on the device of the encoder.

    Args:
        classes: for each of `objectives.specs` the number of classes of its data, where it has labels.
    """
    built = zip(objectives.specs, classes, strict=True)
    return [spec.build(encoder.dimension, count).to(encoder.device) for spec, count in built]
