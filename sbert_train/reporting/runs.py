"""Finished runs beside each other: where their configurations differ, and where their results.

Of a run's figures its report holds values and intervals, not what each example gave. So the interval of a difference
from the run's own baseline is told, and differences between runs have none here: `eval` computes it.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

_OUTPUT = "output_dir"
_SETS = re.compile(r"data\.(train|eval)")
_BLOCK = re.compile(r"|model|data|train|data\.(train|eval)\.[0-9]+")
"""Parts of a configuration that are the same thing in every run, whichever keys it has there."""
_NOTHING = object()


@dataclass(frozen=True)
class Figure:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """A metric of a run: of its base, of its model, and the paired difference of the two."""

    before: Figure
    after: Figure
    difference: Figure


@dataclass(frozen=True)
class EvalSet:
    """The results of a run on an eval set."""

    name: str
    kind: str
    primary_metric: str
    n: int
    unit: str
    fingerprint: str
    metrics: Mapping[str, Change]


@dataclass(frozen=True)
class FinishedRun:
    """What a run left behind, as far as it is compared.

    Attributes:
        name: by which it is called beside the others.
        folder: where it is, as it was named.
        config: the tree of its config.yaml.
        facts: name -> what it ran on, and how it went.
        selected_by: EVALSET_METRIC by which its model was selected; None where it is the last.
        sets: its results.
    """

    name: str
    folder: str
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    selected_by: str | None
    sets: tuple[EvalSet, ...]


@dataclass(frozen=True)
class Beside:
    """The runs that were evaluated on one eval set, the same examples for all."""

    task: str
    kind: str
    n: int
    unit: str
    fingerprint: str
    metrics: Mapping[str, Mapping[str, Change]]
    """metric -> run -> its figures: the main metric first, then those by which a model was selected."""
    from_first: Mapping[str, Mapping[str, float]]
    """metric -> run -> its value less that of the first run here, which has no entry."""


@dataclass(frozen=True)
class RunsCompared:
    """Runs beside each other, in the order in which they were named."""

    runs: tuple[FinishedRun, ...]
    config: Mapping[str, Mapping[str, Any]]
    """Dotted key -> run -> value, where they differ; a run in whose configuration the key is not has no entry."""
    facts: Mapping[str, Mapping[str, Any]]
    """The same of versions, steps and times."""
    sets: tuple[Beside, ...]
    notes: tuple[str, ...]
    """What is not compared, and why."""
    eval_command: str | None
    """What computes the interval of the difference between the runs; None where there is no such command."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(run.name for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps, with these keys:

            runs: [{name, folder, selected_by}, ...]
            config: {key: {run: value}}      only keys that differ, as deep as runs are of one kind there; below that
                                             the value is a whole list or mapping. No entry where a run does not have
                                             the key, which for one of train means the default
            facts: {name: {run: value}}      versions, steps, seconds and rows that differ
            evaluation: [{task, kind, n, unit, fingerprint,
                          metrics: {metric: {run: {before, after, difference: {value, low, high}, from_first}}}}, ...]
            notes: [what is not compared, and why]
            eval_command: prints the paired interval between the runs; null where there is none

        The interval of difference is that of the run's model from its own base; from_first is the value of after less
        that of the first run of the eval set, null for that run.
        """
        return {
            "runs": [
                {"name": run.name, "folder": run.folder, "selected_by": run.selected_by} for run in self.runs
            ],
            "config": self.config,
            "facts": self.facts,
            "evaluation": [_set_to_json(one) for one in self.sets],
            "notes": list(self.notes),
            "eval_command": self.eval_command,
        }


def compare_runs(runs: Sequence[FinishedRun]) -> RunsCompared:
    """Compare two or more runs with names of their own."""
    config = _differing_config({run.name: run.config for run in runs})
    if len(config) > 1:
        config.pop(_OUTPUT, None)
    sets, notes = _sets_beside(runs)
    command = None
    if any(len(next(iter(one.metrics.values()))) > 1 for one in sets):
        if _prompts_agree(runs):
            command = _eval_command(runs)
        else:
            notes.append(
                "the runs have other prompts, with which `eval --config` would refuse a model: name the eval sets by "
                "`eval MODEL MODEL --data`, and each model takes its own"
            )
    return RunsCompared(
        runs=tuple(runs),
        config=config,
        facts=_differing({run.name: dict(run.facts) for run in runs}, len(runs)),
        sets=sets,
        notes=tuple(notes),
        eval_command=command,
    )


def _differing_config(trees: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Key -> run -> value, where configurations differ: as deep as they are of one kind, and no deeper."""
    rows: dict[str, dict[str, Any]] = {}

    def compare(key: str, values: dict[str, Any]) -> None:
        parts = _parts(key, list(values.values())) if len(values) == len(trees) else None
        if parts is None:
            rows.update(_differing({run: {key: value} for run, value in values.items()}, len(trees)))
            return
        for part in parts:
            found = {run: _part(value, part) for run, value in values.items()}
            there = {run: value for run, value in found.items() if value is not _NOTHING}
            compare(f"{key}.{part}" if key else str(part), there)

    compare("", {run: {**tree, "train": tree.get("train", {})} for run, tree in trees.items()})
    return rows


def _parts(key: str, values: Sequence[Any]) -> list[Any] | None:
    """The keys or numbers by which values are compared; None where they are compared whole.

    That is where one is a mapping and another is not, or mappings have other keys, such as two objectives: of their
    parts, each would be missing in one of the two. A block of the configuration is compared by its keys all the same,
    and so are lists of sets.
    """
    if all(isinstance(value, Mapping) for value in values):
        keys = list(dict.fromkeys(part for value in values for part in value))
        return keys if _BLOCK.fullmatch(key) or all(len(value) == len(keys) for value in values) else None
    if _SETS.fullmatch(key) and all(isinstance(value, list) for value in values):
        return list(range(max(map(len, values))))
    return None


def _part(value: Any, part: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(part, _NOTHING)
    return value[part] if part < len(value) else _NOTHING


def _differing(by_run: Mapping[str, Mapping[str, Any]], runs: int) -> dict[str, dict[str, Any]]:
    """Key -> run -> value, of keys that not all of so many runs have the same value of; in the order of their own."""
    keys = dict.fromkeys(key for values in by_run.values() for key in values)
    found = {key: {run: values[key] for run, values in by_run.items() if key in values} for key in keys}
    return {
        key: values
        for key, values in found.items()
        if len(values) < runs or len({_exactly(one) for one in values.values()}) > 1
    }


def _exactly(value: Any) -> str:
    """Equal only for what a configuration takes for equal: 1 is 1.0, and neither is true."""
    if isinstance(value, Mapping):
        return repr(sorted((str(key), _exactly(one)) for key, one in value.items()))
    if isinstance(value, list):
        return repr([_exactly(one) for one in value])
    return repr(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def _sets_beside(runs: Sequence[FinishedRun]) -> tuple[tuple[Beside, ...], list[str]]:
    groups: dict[tuple[str, str, str], dict[str, EvalSet]] = {}
    for run in runs:
        for one in run.sets:
            groups.setdefault((one.name, one.kind, one.fingerprint), {})[run.name] = one
    selecting = {run.selected_by for run in runs}
    notes = []
    for name in dict.fromkeys(key[0] for key in groups):
        same = [list(found) for key, found in groups.items() if key[0] == name]
        if len(same) > 1:
            parts = " and ".join(", ".join(names) for names in same)
            notes.append(f"{name} is not of the same examples in {parts}: these are not compared")
    if without := [run.name for run in runs if not run.sets]:
        notes.append(f"without eval sets: {', '.join(without)}")
    return tuple(_beside(found, selecting) for found in groups.values()), notes


def _beside(found: Mapping[str, EvalSet], selecting: set[str | None]) -> Beside:
    first = next(iter(found.values()))
    shown = [
        first.primary_metric,
        *(
            metric
            for metric in first.metrics
            if metric != first.primary_metric and f"{first.name}_{metric}" in selecting
        ),
    ]
    metrics = {
        metric: {run: one.metrics[metric] for run, one in found.items() if metric in one.metrics}
        for metric in shown
    }
    differences = {}
    for metric, changes in metrics.items():
        values = {run: change.after.value for run, change in changes.items()}
        (_, reference), *others = values.items()
        differences[metric] = {run: value - reference for run, value in others}
    return Beside(first.name, first.kind, first.n, first.unit, first.fingerprint, metrics, differences)


def _prompts_agree(runs: Sequence[FinishedRun]) -> bool:
    prompts = [run.config.get("model", {}).get("prompts") for run in runs]
    return all(one == prompts[0] for one in prompts)


def _eval_command(runs: Sequence[FinishedRun]) -> str:
    models = [str(PurePath(run.folder) / "model") for run in runs]
    config = str(PurePath(runs[0].folder) / "config.yaml")
    return shlex.join(["sbert-train", "eval", *models, "--config", config])


def _set_to_json(one: Beside) -> dict[str, Any]:
    metrics = {
        metric: {
            run: {**asdict(change), "from_first": one.from_first[metric].get(run)}
            for run, change in changes.items()
        }
        for metric, changes in one.metrics.items()
    }
    about = {name: getattr(one, name) for name in ("task", "kind", "n", "unit", "fingerprint")}
    return {**about, "metrics": metrics}
