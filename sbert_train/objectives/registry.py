"""The objectives by name, each with the roles that its rows must have, and how one is built from its options.

D dimensions of an embedding, C classes.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, Literal

from torch import Tensor, nn

from sbert_train.data.roles import TEXT_ROLES
from sbert_train.errors import DataError
from sbert_train.objectives.contrastive import contrastive, online_contrastive
from sbert_train.objectives.cosine_regression import cosine_regression
from sbert_train.objectives.distillation import embedding_distillation, margin_mse
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.graded import angle, cosent
from sbert_train.objectives.in_batch_negatives import InBatchNegatives
from sbert_train.objectives.matryoshka import Matryoshka
from sbert_train.objectives.softmax import SoftmaxClassifier
from sbert_train.objectives.triplet import batch_triplet, triplet

DEFAULT_TEMPERATURE = 0.05
"""Of in-batch negatives: a scale of 20, as sentence-transformers has it, and SimCSE (Gao et al. 2021)."""

Loss = Callable[[RoleEmbeddings], Tensor]


@dataclass(frozen=True)
class Kind:
    """A kind of loss, and what the rows of its data sets must hold.

    Attributes:
        loss: (RoleEmbeddings, **options) -> scalar; or the class of a module, whose forward it is, built from options.
        needs: roles that every row must have.
        takes: roles that it uses when they are there; at least one of them where it needs none.
        batch_is_negatives: other rows of the batch serve as negatives, so a text should not occur twice in it.
        least_rows: of a batch (of one process, unless the objective gathers them); fewer teach nothing.
        pairs_labels: a row finds its positives in the batch by their label, so there should be some.
        score_range: the lowest and highest score that it can be trained towards.
        several_scores: whether a row may have several.
        is_taught: its reference is a teacher, whose embeddings the model's must have the dimensions of.
        labels: the labels that it takes: any, 0 and 1, or all of 0, 1, ... C - 1.
    """

    loss: Callable[..., Any]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    batch_is_negatives: bool = False
    least_rows: int = 1
    pairs_labels: bool = False
    score_range: tuple[float, float] = (-inf, inf)
    several_scores: bool = False
    is_taught: bool = False
    labels: Literal["any", "binary", "classes"] = "any"


_SCORED = ("sentence1", "sentence2", "score")
_LABELLED = ("sentence1", "sentence2", "label")

OBJECTIVES: Mapping[str, Kind] = {
    "in_batch_negatives": Kind(
        InBatchNegatives,
        needs=("anchor", "positive"),
        takes=("negative",),
        batch_is_negatives=True,
        least_rows=2,
    ),
    "cosine_regression": Kind(cosine_regression, needs=_SCORED, score_range=(-1.0, 1.0)),
    "cosent": Kind(cosent, needs=_SCORED, least_rows=2),
    "angle": Kind(angle, needs=_SCORED, least_rows=2),
    "triplet": Kind(triplet, needs=("anchor", "positive", "negative")),
    "batch_triplet": Kind(batch_triplet, needs=("sentence1", "label"), pairs_labels=True, least_rows=4),
    "softmax": Kind(SoftmaxClassifier, needs=_LABELLED, labels="classes"),
    "contrastive": Kind(contrastive, needs=_LABELLED, labels="binary"),
    "online_contrastive": Kind(online_contrastive, needs=_LABELLED, labels="binary", least_rows=2),
    "embedding_distillation": Kind(embedding_distillation, takes=TEXT_ROLES, is_taught=True),
    "margin_mse": Kind(margin_mse, needs=("anchor", "positive", "negative", "score"), several_scores=True),
}


@dataclass(frozen=True)
class ObjectiveSpec:
    """An objective as a configuration asks for it, before anything is known of the model and the data.

    Attributes:
        name: a key of OBJECTIVES.
        options: keyword arguments of its loss.
        reference: the model whose embeddings of the same texts it compares with; None for none.
        dims: dimensions of a Matryoshka loss; None for the loss of all dimensions.
        weights: one for each of dims; None for 1 each.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None
    dims: tuple[int, ...] | None = None
    weights: tuple[float, ...] | None = None

    @property
    def kind(self) -> Kind:
        return OBJECTIVES[self.name]

    def roles_of(self, set_name: str, found: Collection[str]) -> tuple[str, ...]:
        """Those of a data set's roles that this objective uses.

        Raises:
            DataError: a role that it needs is not there.
        """
        needs, takes = self.kind.needs, self.kind.takes
        missing = [role for role in needs if role not in found]
        if missing or not any(role in found for role in (*needs, *takes)):
            wanted = f"the roles {', '.join(needs)}" if needs else f"one of the roles {', '.join(takes)}"
            raise DataError(
                f"data set {set_name}: objective {self.name} needs {wanted}; "
                f"missing: {', '.join(missing or takes)}; found: {', '.join(found) or 'none'}. "
                "Name the columns that hold them under `columns`"
            )
        return tuple(role for role in (*needs, *takes) if role in found)

    def build(self, dimension: int, classes: int | None = None) -> "Objective":
        """The loss itself.

        Args:
            dimension: D.
            classes: C, of the labels of its data; for softmax.
        """
        if self.dims is None:
            return Objective(self, self._loss(dimension, classes))
        losses = [self._loss(dim, classes) for dim in self.dims]
        return Objective(self, Matryoshka(losses, self.dims, self.weights, cut_reference=self.kind.is_taught))

    def _loss(self, dimension: int, classes: int | None) -> Loss:
        if self.kind.loss is SoftmaxClassifier:
            assert classes is not None
            return SoftmaxClassifier(dimension, classes, **self.options, normalize=self.dims is not None)
        if isinstance(self.kind.loss, type):
            module: Loss = self.kind.loss(**self.options)
            return module
        return partial(self.kind.loss, **self.options)


class Objective(nn.Module):
    """The loss over the embeddings of a batch, with whatever weights it has of its own."""

    def __init__(self, spec: ObjectiveSpec, loss: Loss) -> None:
        super().__init__()
        self.spec = spec
        self.loss = loss

    def forward(self, batch: RoleEmbeddings) -> Tensor:
        """The scalar loss of a batch."""
        return self.loss(batch)


def objective_spec(name: str, **options: Any) -> ObjectiveSpec:
    """The objective that these keys of a configuration ask for.

    >>> objective_spec("in_batch_negatives", temperature=0.05, guide="self", guide_margin=0.1).options
    {'scale': 20.0, 'guide_margin': 0.1}
    >>> objective_spec("embedding_distillation", teacher="big", matryoshka_dims=(64, 32)).reference
    'big'
    """
    dims, weights = options.pop("matryoshka_dims", None), options.pop("matryoshka_weights", None)
    reference = options.pop("teacher", None)
    if name == "in_batch_negatives":
        scale, temperature = options.pop("scale", None), options.pop("temperature", None)
        options = {"scale": scale or 1 / (temperature or DEFAULT_TEMPERATURE), **options}
        if options.get("hardness") == "none":
            del options["hardness"]
            options.pop("hardness_strength", None)
        guide = options.pop("guide", None)
        if guide is None:
            options = {
                key: value for key, value in options.items() if key not in ("guide_margin", "margin_strategy")
            }
        reference = None if guide == "self" else guide
    return ObjectiveSpec(name, options, reference, dims, weights)
