"""Eval sets named on a command line: a source, and the task that its columns speak for."""

from collections.abc import Mapping

from datasets import Dataset

from sbert_train.data.hints import listed
from sbert_train.data.locate import DEFAULT_SPLIT, Files, classify
from sbert_train.data.sources import LoadedSet, load_set
from sbert_train.errors import DataError
from sbert_train.evaluation.pair_classification import PairClassificationTask
from sbert_train.evaluation.tasks import TASKS, Task, make_task


def load_eval_sets(
    sources: Mapping[str, str],
    *,
    split: str | None = None,
    task: str | None = None,
    columns: Mapping[str, str | None] | None = None,
) -> tuple[tuple[LoadedSet, ...], tuple[Task, ...]]:
    """Read eval sets and choose a task for each.

    Args:
        sources: name -> file, Hub id or builtin data set.
        split: of a Hub or builtin data set; None: test. Files are one split.
        task: a key of TASKS for all of them; None: see `task_for`.
        columns: role -> column, where a column is not named as its role; None: leave the role out.

    Raises:
        DataError: a set cannot be read, or no task can be told by its roles.
    """
    loaded, tasks = [], []
    for name, source in sources.items():
        default = DEFAULT_SPLIT if isinstance(classify(source), Files) else "test"
        one = load_set(name, source, split=split or default, columns=columns)
        loaded.append(one)
        tasks.append(make_task(task or task_for(name, one.rows), name, one.rows))
    return tuple(loaded), tuple(tasks)


def task_for(name: str, rows: Dataset) -> str:
    """The first task of TASKS whose roles are all among the columns of rows.

    Roles may speak for several tasks: anchors with positives are retrieval, also where negatives or labels come
    with them; pairs with labels are pair_classification, unless their labels are others than 0 and 1.

    Raises DataError, naming the set, if no task has its roles, or the labels leave open which task is meant.
    """
    roles = rows.column_names
    for kind, task in TASKS.items():
        if set(task.roles) <= set(roles):
            if kind == PairClassificationTask.kind:
                _require_two_labels(name, rows)
            return kind
    wanted = "; ".join(f"{kind} needs {', '.join(task.roles)}" for kind, task in TASKS.items())
    raise DataError(
        f"eval set {name!r}: no task fits the roles {', '.join(roles) or 'none'} ({wanted}); name the columns, such as "
        "--column anchor=question"
    )


def _require_two_labels(name: str, rows: Dataset) -> None:
    labels = sorted(set(rows["label"][:]))
    if not set(labels) <= {0, 1}:
        raise DataError(
            f"eval set {name!r}: the labels of its pairs are {listed(labels, most=5)}, and only 0 and 1 speak for "
            "pair_classification; say what they mean with --task, such as nli for classes of a trained classifier"
        )
