"""The kinds of evaluation, by the name that a config gives them."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

from datasets import Dataset

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.clustering import ClusteringTask
from sbert_train.evaluation.encoding import Classify, Encode
from sbert_train.evaluation.nli import NliTask
from sbert_train.evaluation.pair_classification import PairClassificationTask
from sbert_train.evaluation.reranking import RerankingTask
from sbert_train.evaluation.results import TaskResult, Texts
from sbert_train.evaluation.retrieval import RetrievalTask
from sbert_train.evaluation.sts import StsTask
from sbert_train.evaluation.triplets import TripletTask

__all__ = ["TASKS", "Classify", "Encode", "Task", "TaskResult", "Texts", "make_task"]


class Task(Protocol):
    """An eval set that is ready to judge any model."""

    kind: ClassVar[str]
    """Its key in TASKS."""
    roles: ClassVar[tuple[str, ...]]
    """The columns that its rows must have."""
    primary_metric: ClassVar[str]
    """The metric that stands for the task."""
    uses_classifier: ClassVar[bool]
    """Whether it judges the classifier that was trained with the model, and so all of the model's dimensions."""
    name: str
    """Name of the eval set."""

    def __init__(self, name: str, rows: Dataset) -> None:
        """Take rows with canonical columns; DataError, naming the set, if it cannot judge by them."""

    def evaluate(self, encode: Encode, classify: Classify | None = None) -> TaskResult:
        """Judge the model behind encode; EvaluationError, naming the set, if the figures are undefined.

        Args:
            classify: the classifier that was trained with the model, if it has one; for tasks about classes.
        """

    def texts_of(self, example: int) -> Texts:
        """The texts of an example, by its number in the result's sample."""


TASKS: Mapping[str, type[Task]] = {
    "sts": StsTask,
    "retrieval": RetrievalTask,
    "pair_classification": PairClassificationTask,
    "triplet": TripletTask,
    "reranking": RerankingTask,
    "nli": NliTask,
    "clustering": ClusteringTask,
}


def make_task(kind: str, name: str, rows: Dataset) -> Task:
    """The task of that kind over rows with canonical columns.

    Raises EvaluationError for an unknown kind and DataError for rows that it cannot judge by.
    """
    if kind not in TASKS:
        raise EvaluationError(
            f"eval set {name!r}: expected a task of {', '.join(TASKS)}, found {kind!r}; correct `task`"
        )
    return TASKS[kind](name, rows)
