"""The folders of finished runs, written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sbert_train.reporting.runs import Change, EvalSet, Figure, FinishedRun


def change(before: float, after: float, margin: float = 0.01) -> Change:
    """Figures of which the interval of the difference reaches so far on either side."""
    gain = after - before
    return Change(
        Figure(before, before - 0.1, before + 0.1),
        Figure(after, after - 0.1, after + 0.1),
        Figure(gain, gain - margin, gain + margin),
    )


def eval_set(
    name: str = "stsb",
    *,
    fingerprint: str = "f1",
    more: Mapping[str, Change] | None = None,
    **metrics: Change,
) -> EvalSet:
    """An eval set of which the first metric is the main one."""
    metrics |= more or {}
    return EvalSet(name, "sts", next(iter(metrics)), 1379, "pairs", fingerprint, metrics)


def finished(name: str, *sets: EvalSet, selected_by: str | None = None, **config: Any) -> FinishedRun:
    """A run with this configuration besides what every run has."""
    tree = {"output_dir": f"runs/{name}", "model": {"base": "org/base", "prompts": {}}, **config}
    return FinishedRun(name, f"runs/{name}", tree, {}, selected_by, sets)


def report(*sets: EvalSet, best: str | None = None, **training: Any) -> dict[str, Any]:
    """A report.json."""

    def figures(which: str) -> list[dict[str, Any]]:
        return [{m: vars(getattr(c, which)) for m, c in one.metrics.items()} for one in sets]

    tasks = [
        {
            "task": one.name,
            "kind": one.kind,
            "primary_metric": one.primary_metric,
            "n": one.n,
            "unit": one.unit,
            "fingerprint": one.fingerprint,
            "scores": {"before": before, "after": after},
            "differences": {"after": difference},
        }
        for one, before, after, difference in zip(
            sets, figures("before"), figures("after"), figures("difference"), strict=True
        )
    ]
    return {
        "training": {
            "steps": 10,
            "epochs": 1.0,
            "seconds": 12.5,
            "rows_per_second": 51.2,
            "best_step": None if best is None else 10,
            "best_metric_name": best,
            **training,
        },
        "data": [{"set": "pairs", "kept": 100}, {"set": "stsb", "kept": 1379}],
        "evaluation": {"tasks": tasks} if tasks else None,
    }


def write_run(folder: Path, told: dict[str, Any] | None, **config: Any) -> Path:
    """The folder of a run with this report.json, or with none."""
    folder.mkdir(parents=True)
    tree = {
        "output_dir": str(folder),
        "seed": 42,
        "model": {"base": "org/base", "prompts": {}},
        "data": {"train": [{"source": "pairs.csv"}], "eval": []},
        **config,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(tree))
    versions = {"python": "3.11", "machine": "Linux", "packages": {"sbert-train": "0.1.0", "torch": "2.13.0"}}
    (folder / "environment.json").write_text(json.dumps(versions))
    if told is not None:
        (folder / "report.json").write_text(json.dumps(told))
    return folder
