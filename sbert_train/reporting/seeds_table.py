"""A series of seeds as a table for people: base, mean and standard deviation, gain, and what the gain is worth."""

import textwrap
from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from sbert_train.errors import printable
from sbert_train.reporting.seeds import OverSeeds, Series, SetOverSeeds

_CAPTION = (
    "± is the standard deviation over seeds (n - 1). The spread is that of the seeds' gains; a gain that is smaller is "
    "noise, for another seed may show the opposite."
)


def render(series: Series, width: int = 80) -> Iterator[Table | Text]:
    """What to print, one below the other; of each eval set the main metric, and that which selects a model.

    width: of the screen.
    """
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("eval set", "before", f"after, {len(series.runs)} seeds", "gain"):
        table.add_column(name, overflow="fold")
    lines = []
    for one in series.sets:
        title = printable(f"{one.about.name}, {one.about.n:,} {one.about.unit}")
        table.add_row(Text(title, style="bold"))
        for metric, over in _shown(series, one):
            _add_metric(table, metric, over)
            lines.append(printable(f"{one.about.name}, {metric}: {over.verdict}"))
        table.add_section()
    yield table
    for line in (*lines, _CAPTION):
        yield Text(textwrap.fill(line, width, subsequent_indent="" if line == _CAPTION else "  "))


def _shown(series: Series, one: SetOverSeeds) -> list[tuple[str, OverSeeds]]:
    wanted = {f"{one.about.name}_{one.about.primary_metric}", series.selected_by}
    found = [(metric, over) for metric, over in one.metrics.items() if f"{one.about.name}_{metric}" in wanted]
    return sorted(found, key=lambda pair: pair[0] != one.about.primary_metric)


def _add_metric(table: Table, metric: str, over: OverSeeds) -> None:
    table.add_row(
        Text(f"  {printable(metric)}"),
        f"{over.baseline:.4f}",
        f"{over.mean:.4f} ± {over.standard_deviation:.4f}",
        f"{over.gain:+.4f}" + (" (noise)" if over.noise else ""),
    )
    for seed, change in over.changes.items():
        cells = [f"{change.before.value:.4f}", f"{change.after.value:.4f}", f"{over.gains[seed]:+.4f}"]
        table.add_row(f"    seed {seed}", *cells, style="dim")
