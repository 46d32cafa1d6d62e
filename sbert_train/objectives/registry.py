"""The objectives by name, each with the roles that its rows must have."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from torch import Tensor

from sbert_train.errors import DataError
from sbert_train.objectives.cosine_regression import cosine_regression
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives


@dataclass(frozen=True)
class Objective:
    """A loss over the embeddings of a batch, and what the rows of its data sets must hold.

    Attributes:
        function: (RoleEmbeddings, **options) -> scalar.
        needs: roles that every row must have.
        takes: roles that it uses when they are there.
        batch_is_negatives: other rows of the batch serve as negatives, so a text should not occur twice in it.
        score_range: the lowest and highest score that it can be trained towards.
    """

    function: Callable[..., Tensor]
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    batch_is_negatives: bool = False
    score_range: tuple[float, float] = (-inf, inf)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, batch: RoleEmbeddings) -> Tensor:
        return self.function(batch, **self.options)

    def roles_of(self, set_name: str, found: Collection[str]) -> tuple[str, ...]:
        """Those of a data set's roles that this objective uses.

        Raises:
            DataError: a role that it needs is not there.
        """
        missing = [role for role in self.needs if role not in found]
        if missing:
            raise DataError(
                f"data set {set_name}: objective {self.function.__name__} needs the roles {', '.join(self.needs)}; "
                f"missing: {', '.join(missing)}; found: {', '.join(found) or 'none'}. "
                "Name the columns that hold them under `columns`"
            )
        return tuple(role for role in (*self.needs, *self.takes) if role in found)


OBJECTIVES: dict[str, Objective] = {
    "in_batch_negatives": Objective(
        in_batch_negatives, needs=("anchor", "positive"), takes=("negative",), batch_is_negatives=True
    ),
    "cosine_regression": Objective(
        cosine_regression, needs=("sentence1", "sentence2", "score"), score_range=(-1.0, 1.0)
    ),
}


def make_objective(name: str, **options: Any) -> Objective:
    """The objective of that name with these options (keyword arguments of its function)."""
    chosen = OBJECTIVES[name]
    return replace(chosen, options=options)
