"""What an export says when it is done: what was written, and what was compared with the model it came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """One comparison of the exported model with the original.

    Attributes:
        reader: what loaded the export in a fresh process, with its version.
        figures: what was measured, by name; empty where the reader could not be tried.
        remark: what a reader of the figures should know, or why there are none.
    """

    reader: str
    figures: Mapping[str, float]
    remark: str = ""

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.2g}" if value < 0.01 else f"{name} {value:.4f}"
                            for name, value in self.figures.items())  # fmt: skip
        return f"{self.reader}: " + "; ".join(filter(None, [figures, self.remark]))


@dataclass(frozen=True)
class ExportReport:
    """A finished export.

    Attributes:
        output: the folder.
        main_file: the file in it that holds the exported weights.
        megabytes: the size of that file, in 10^6 bytes.
        checks: the comparisons, none of which failed.
        seconds: what all of it took.
    """

    output: Path
    main_file: str
    megabytes: float
    checks: tuple[Check, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [f"{self.output / self.main_file} ({self.megabytes:.1f} MB, {self.seconds:.0f} s)"]
        return "\n".join(lines + [f"  checked by {check}" for check in self.checks])
