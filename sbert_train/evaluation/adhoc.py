"""Eval sets named on a command line: a source, and the task that its columns speak for."""

from collections.abc import Mapping, Sequence

from sbert_train.data.locate import DEFAULT_SPLIT, Files, classify
from sbert_train.data.sources import load_set
from sbert_train.errors import DataError
from sbert_train.evaluation.tasks import TASKS, Task, make_task


def load_eval_sets(
    sources: Mapping[str, str],
    *,
    split: str | None = None,
    task: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[Task, ...]:
    """Read eval sets and choose a task for each.

    Args:
        sources: name -> file, Hub id or builtin data set.
        split: of a Hub or builtin data set; None: test. Files are one split.
        task: a key of TASKS for all of them; None: the first whose roles a set has.
        columns: role -> column, where a column is not named as its role.

    Raises:
        DataError: a set cannot be read, or has the roles of no task.
    """
    tasks = []
    for name, source in sources.items():
        default = DEFAULT_SPLIT if isinstance(classify(source), Files) else "test"
        rows = load_set(name, source, split=split or default, columns=columns).rows
        tasks.append(make_task(task or _task_for(name, rows.column_names), name, rows))
    return tuple(tasks)


def _task_for(name: str, roles: Sequence[str]) -> str:
    for kind, task in TASKS.items():
        if set(task.roles) <= set(roles):
            return kind
    wanted = "; ".join(f"{kind} needs {', '.join(task.roles)}" for kind, task in TASKS.items())
    raise DataError(
        f"eval set {name!r}: no task fits the roles {', '.join(roles) or 'none'} ({wanted}); name the columns, such as "
        "--column anchor=question"
    )
