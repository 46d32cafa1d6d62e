"""What an evaluation gives back: figures, and the examples behind them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sbert_train.evaluation.metrics import Floats
from sbert_train.evaluation.samples import Sample

Texts = tuple[tuple[str, str], ...]
"""(role, text) of each text of an example."""


@dataclass(frozen=True, eq=False)
class Cosines:
    """The cosines of texts that an eval set says belong together, and of texts that it says do not."""

    together: Floats
    apart: Floats


@dataclass(frozen=True)
class TaskResult:
    """The figures of one model on one eval set."""

    task: str
    """Name of the eval set."""
    kind: str
    """Key of TASKS."""
    metrics: Mapping[str, float]
    """Every metric of the task by name; larger is better for all of them."""
    primary_metric: str
    """The metric that stands for the task in tables and, unless told otherwise, in model selection."""
    n: int
    """Number of examples that the figures are over and that a bootstrap draws from."""
    unit: str
    """What an example is: pairs, queries."""
    details: Mapping[str, int]
    """Counts that a reader of the figures should know, such as the size of the corpus."""
    fingerprint: str
    """Digest of the texts and gold: results with the same one may be compared example by example."""
    decisions: Mapping[str, Mapping[str, float]] = field(kw_only=True, default_factory=dict)
    """Metric -> what this model's figure rests on, such as the threshold of its best F1, and precision there."""
    sample: Sample = field(repr=False, compare=False)
    """The examples, for resampling."""
    cosines: Cosines | None = field(kw_only=True, default=None, repr=False, compare=False)
    """How far the model tells apart what the set tells apart; None where it says nothing of two texts."""

    @property
    def primary(self) -> float:
        """Value of the primary metric."""
        return self.metrics[self.primary_metric]
