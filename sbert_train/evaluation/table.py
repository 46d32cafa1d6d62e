"""A comparison as a table for people: a column for each model, a block of lines for each eval set."""

from rich import box
from rich.table import Table
from rich.text import Text

from sbert_train.errors import printable
from sbert_train.evaluation.bootstrap import LEVEL, Estimate
from sbert_train.evaluation.compare import Comparison, TaskComparison

INTERVAL = f"  {LEVEL:.0%} interval"


def render(comparison: Comparison, *, all_metrics: bool = False, also: str | None = None) -> Table:
    """The primary metric of each eval set (or all its metrics), models side by side, with intervals.

    also: one more metric, as EVALSET_METRIC, such as that which selected a checkpoint.

    Differences from the first model stand below, with the interval of the paired difference; a star marks
    those whose interval excludes zero, so that nothing is told by colour alone. Three models fit into 80
    columns; where more do not, their cells wrap and no digit is cut.
    """
    table = Table(
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        caption=Text(_caption(comparison)),
        caption_justify="left",
    )
    table.add_column("eval set", overflow="fold")
    for model in comparison.models:
        # Text, because a path may hold what rich would read as markup; rich lets the codes of a terminal pass.
        table.add_column(Text(printable(model)), overflow="fold")
    for task in comparison.tasks:
        table.add_row(Text(f"{task.task}, {task.n:,} {task.unit}", style="bold"))
        for metric in _metrics(task, all_metrics, also):
            _add_metric(table, comparison, task, metric)
        table.add_section()
    return table


def _add_metric(table: Table, comparison: Comparison, task: TaskComparison, metric: str) -> None:
    scores = [task.scores[model][metric] for model in comparison.models]
    table.add_row(f"  {metric}", *[f"{score.value:.4f}" for score in scores])
    table.add_row(INTERVAL, *[f"{score.low:.4f} to {score.high:.4f}" for score in scores], style="dim")
    if task.differences:
        changes = [task.differences[model][metric] for model in comparison.models[1:]]
        table.add_row("  difference", "baseline", *[_change(change) for change in changes])
        ranges = [f"{change.low:+.4f} to {change.high:+.4f}" for change in changes]
        table.add_row(INTERVAL, "", *ranges, style="dim")


def _change(change: Estimate) -> Text:
    if not change.excludes_zero:
        return Text(f"{change.value:+.4f}")
    return Text(f"{change.value:+.4f} *", style="green" if change.value > 0 else "red")


def _metrics(task: TaskComparison, all_metrics: bool, also: str | None) -> list[str]:
    others = [metric for metric in next(iter(task.scores.values())) if metric != task.primary_metric]
    return [
        task.primary_metric,
        *(metric for metric in others if all_metrics or f"{task.task}_{metric}" == also),
    ]


def _caption(comparison: Comparison) -> str:
    drawn = f"Intervals: {comparison.resamples:,} bootstrap resamples."
    if len(comparison.models) == 1:
        return drawn
    return f"{drawn} * excludes 0: a difference from the first model beyond the chance of these examples."
