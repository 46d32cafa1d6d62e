"""The folders of finished runs, read to be compared. Nothing here needs torch."""

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sbert_train.config.reader import read_yaml_file
from sbert_train.errors import CommandError, ConfigError
from sbert_train.paths import expanded
from sbert_train.reporting.runs import Change, EvalSet, Figure, FinishedRun
from sbert_train.training.run_folder import RunFolder

_FILES = ("config.yaml", "report.json")
_SERIES = "seeds.json"


def read_runs(places: Sequence[str]) -> list[FinishedRun]:
    """Read two or more runs.

    Args:
        places: the folder of each, or its config.yaml or report.json.

    Raises:
        CommandError: a line for each that is missing, not finished, broken or named twice.
    """
    if len(places) < 2:
        raise CommandError(
            "compare: expected the folders of two runs or more, such as runs/a runs/b; `sbert-train eval` shows the "
            "figures of one"
        )
    folders = [_folder_of(place) for place in places]
    names = _names(folders)
    runs, problems = [], []
    for number, folder in enumerate(folders):
        try:
            if folder.resolve() in [one.resolve() for one in folders[:number]]:
                raise CommandError(f"{folder}: named twice; name each run once")
            runs.append(read_run(names[number], folder))
        except (CommandError, ConfigError) as error:
            problems.append(" ".join(str(error).split()))
    if problems:
        raise CommandError("\n".join(problems))
    return runs


def _folder_of(place: str) -> Path:
    path = expanded(place)
    return path.parent if path.name in _FILES and not path.is_dir() else path


def _names(folders: Sequence[Path]) -> list[str]:
    """The last part of each path, or all of it where another ends alike."""
    last = [folder.absolute().name for folder in folders]
    return [
        name if last.count(name) == 1 else str(folder) for name, folder in zip(last, folders, strict=True)
    ]


def read_run(name: str, folder: Path) -> FinishedRun:
    """Read the folder of a finished run; CommandError or ConfigError where it is none."""
    files = RunFolder(folder)
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder}: a file; expected the folder of a run{_hint(folder)}")
    if not folder.is_dir():
        raise CommandError(f"{folder}: no such folder; expected that of a run")
    if not files.config.is_file():
        raise CommandError(f"{folder}: not the folder of a run, as no config.yaml is in it{_hint(folder)}")
    if not files.report.is_file():
        again = shlex.join(["sbert-train", "fit", "--config", str(files.config)])
        raise CommandError(
            f"{folder}: this run is not finished{_logged(files.log)}, as no report.json is in it; `{again}` goes on"
        )
    config = read_yaml_file(files.config)
    if not isinstance(config.get("data"), dict) or not isinstance(config.get("model"), dict):
        raise CommandError(
            f"{files.config}: not the configuration of a run: expected the blocks model and data"
        )
    report = _from_json(files.report, lambda found: found)
    environment = _from_json(files.environment, _versions) if files.environment.is_file() else {}
    try:
        training = report["training"]
        chosen = training["best_step"] is not None and training["best_metric_name"] is not None
        return FinishedRun(
            name=name,
            folder=str(folder),
            config=config,
            facts={**_training_facts(training), **_row_facts(report, config), **environment},
            selected_by=str(training["best_metric_name"]).removeprefix("eval_") if chosen else None,
            sets=tuple(_eval_set(task) for task in (report["evaluation"] or {"tasks": []})["tasks"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CommandError(
            f"{files.report}: not the report of a run: {type(error).__name__} {error}; repeat the run with --overwrite"
        ) from error


def _hint(folder: Path) -> str:
    """What was meant, perhaps."""
    if (folder / _SERIES).is_file() or any(folder.glob("seed-*/config.yaml")):
        return f"; it holds a series: name its runs, such as {folder / 'seed-1'}"
    if (folder.absolute().parent / "report.json").is_file():
        return f"; the run is {folder.absolute().parent}"
    return ""


def _logged(log: Path) -> str:
    """How far a run came, by the last whole line of its log."""
    try:
        steps = [json.loads(line)["step"] for line in log.read_text(encoding="utf-8").splitlines()[-1:]]
        return f" (step {int(steps[0])} is the last in its log)"
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return ""


def _from_json(file: Path, take: Callable[[Any], Any]) -> Any:
    try:
        return take(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CommandError(
            f"{file}: cannot be read as what a run writes: {error}; repeat the run with --overwrite"
        ) from error


def _versions(environment: Any) -> dict[str, str]:
    own = {"python": str(environment["python"]), "machine": str(environment["machine"])}
    return own | {f"versions.{name}": str(number) for name, number in environment["packages"].items()}


def _training_facts(training: Any) -> dict[str, Any]:
    seconds = training.get("train_runtime", training.get("seconds"))
    per_second = training.get("pairs_per_second", training.get("rows_per_second"))
    facts = {
        "steps": training["steps"],
        "epochs": training["epochs"],
        "best_step": training["best_step"],
        "train_runtime": seconds,
        "pairs_per_second": per_second,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _row_facts(report: Any, config: Any) -> dict[str, int]:
    """The rows that were kept of each set: those of training come first in the report."""
    trained = len(config["data"]["train"])
    return {
        f"rows of {'train' if number < trained else 'eval'} {one['set']}": int(one["kept"])
        for number, one in enumerate(report["data"])
    }


def _eval_set(task: Any) -> EvalSet:
    before, after = task["scores"]["before"], task["scores"]["after"]
    metrics = {
        str(metric): Change(_figure(before[metric]), _figure(after[metric]), _figure(difference))
        for metric, difference in task["differences"]["after"].items()
    }
    primary = str(task["primary_metric"])
    return EvalSet(
        name=str(task["task"]),
        kind=str(task["kind"]),
        primary_metric=primary if primary in metrics else next(iter(metrics)),
        n=int(task["n"]),
        unit=str(task["unit"]),
        fingerprint=str(task["fingerprint"]),
        metrics=metrics,
    )


def _figure(found: Any) -> Figure:
    return Figure(float(found["value"]), float(found["low"]), float(found["high"]))
