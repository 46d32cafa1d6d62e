"""report.json: what it says is what happened, whole after interruptions, and docs/report.md names every key."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sbert_train.evaluation.encoding import Encode
from sbert_train.evaluation.sts import StsTask
from sbert_train.evaluation.tasks import TaskResult
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training import report as report_module
from sbert_train.training.fit import FitResult
from sbert_train.training.progress import Progress
from sbert_train.training.run_folder import describe_environment
from sbert_train.training.run_log import monitors_of, read_log, warnings_of
from sbert_train.training.trainer import SentenceTrainer
from tests.training.interruptions import EVERY_TWO, killed_in_any_step, killed_in_step, trained
from tests.training.runs import config, log_of, run, write_csv, write_scored, write_triplets

DOCS = Path(__file__).parents[2] / "docs" / "report.md"
TYPES = {"integer": int, "number": (int, float), "text": str, "boolean": bool, "null": type(None)}
ENTRIES = [
    {"step": 2, "epoch": 0.5, "monitor_alignment": 0.25, "monitor_uniformity": float("nan")},
    {"step": 3, "epoch": 0.75, "warning": "the embeddings draw together"},
    {"step": 4, "epoch": 1.0, "loss": 0.5},
]


def report_of(result: FitResult) -> Any:
    return json.loads(result.folder.report.read_text(), parse_constant=pytest.fail)


def settles_early(folder: Path, base: Path, **train: Any) -> Any:
    """A run that is best at its first evaluation, as nearly no step after it moves anything for the better."""
    settings = {"num_train_epochs": 2, "eval_strategy": "steps", "eval_steps": 5, "save_strategy": "steps",
                "save_steps": 5, "learning_rate": 0.05, **train}  # fmt: skip
    return config(folder, base, train=settings)


def test_baseline_best_and_final_are_those_of_their_models(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = trained(settles_early(tmp_path, tiny_model))
    report = report_of(result)
    steps, best = report["training"]["steps"], report["training"]["best_step"]
    assert steps == 12 and best in (5, 10), "the premise: the best is not the last"
    logged = {entry["step"]: entry for entry in log_of(result) if "eval_pairs_spearman_cosine" in entry}
    assert sorted(logged) == [0, 5, 10, 12]

    (task,) = report["evaluation"]["tasks"]
    for metric, change in report["deltas"]["pairs"].items():
        before, after = (task["scores"][model][metric]["value"] for model in ("before", "after"))
        assert report["baseline"]["pairs"][metric] == before
        assert report["best"]["pairs"][metric] == after == logged[best][f"eval_pairs_{metric}"]
        assert change == {key: task["differences"]["after"][metric][key] for key in ("value", "low", "high")}
        assert change["value"] == pytest.approx(after - before)
    assert report["final"]["pairs"] == {
        metric: logged[12][f"eval_pairs_{metric}"] for metric in report["best"]["pairs"]
    }
    assert report["selected_by"] == "pairs_spearman_cosine"

    last = settles_early(tmp_path, tiny_model, load_best_model_at_end=False)
    result, _ = trained(last.model_copy(update={"output_dir": str(tmp_path / "last")}))
    other = report_of(result)
    assert other["best"] == other["final"] == report["final"], "the same steps, whose last model is kept"
    assert other["final"] != report["best"]
    assert other["selected_by"] is None and other["training"]["best_step"] is None


def test_the_last_model_is_evaluated_once(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[str] = []
    inner = SentenceTrainer.run_tasks

    def run_tasks(self: SentenceTrainer) -> dict[str, TaskResult]:
        digest = torch.cat([weight.detach().flatten() for weight in self.encoder.parameters()]).double().sum()
        evaluated.append(f"{digest:.12f}")
        return inner(self)

    monkeypatch.setattr(SentenceTrainer, "run_tasks", run_tasks)
    result, _ = trained(settles_early(tmp_path, tiny_model))
    report = report_of(result)
    best, steps = report["training"]["best_step"], report["training"]["steps"]
    assert (steps, len(set(evaluated))) == (12, 4), "the base and three evaluations"
    assert len(evaluated) == 5, "and once more the one that was kept"
    assert evaluated[-1] == evaluated[best // 5] != evaluated[-2]
    last = [entry for entry in log_of(result) if "eval_pairs_pearson_dot" in entry][-1]
    assert report["final"]["pairs"]["pearson_dot"] == last["eval_pairs_pearson_dot"]


def test_a_finished_run_that_is_written_again_evaluates_its_last_model_anew(
    tmp_path: Path, tiny_model: Path
) -> None:
    first, _ = trained(settles_early(tmp_path, tiny_model))
    with killed_in_any_step():
        again, _ = trained(settles_early(tmp_path, tiny_model))
    report, other = report_of(first), report_of(again)
    assert report["final"] != report["best"]
    assert (other["final"], other["best"]) == (report["final"], report["best"])


def test_a_last_model_that_collapsed_costs_no_run(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but its figures is missing: the best one was saved before."""
    trained(settles_early(tmp_path, tiny_model))
    evaluate = StsTask.evaluate
    at_end: list[int] = []

    def collapsed(self: StsTask, encode: Encode, classify: Any = None) -> TaskResult:
        if at_end:
            return evaluate(self, lambda texts, role: np.ones((len(texts), 4), np.float32), classify)
        return evaluate(self, encode, classify)

    inner = SentenceTrainer.before_best

    def before_best(self: SentenceTrainer) -> None:
        at_end.append(1)
        inner(self)
        at_end.clear()

    monkeypatch.setattr(StsTask, "evaluate", collapsed)
    monkeypatch.setattr(SentenceTrainer, "before_best", before_best)
    with killed_in_any_step():
        result, _ = trained(settles_early(tmp_path, tiny_model))
    report = report_of(result)
    assert report["final"] == {} and report["best"]["pairs"]["pearson_dot"]


def test_tokens_are_those_of_the_distinct_texts_of_each_batch(tmp_path: Path, tiny_model: Path) -> None:
    """Each row holds one text three times."""
    rows = [("the cat", "the cat", "the cat") for _ in range(16)]
    file = write_csv(tmp_path / "same.csv", ("anchor", "positive", "negative"), rows)
    data = {"train": [{"source": str(file)}], "no_duplicates": False}
    result, _ = run(tmp_path, tiny_model, data=data, train={"num_train_epochs": 3})
    training = report_of(result)["training"]
    tokens = len(SentenceEncoder.load(tiny_model).tokenizer("the cat")["input_ids"])
    assert training["steps"] == 6 and tokens == 4
    assert training["tokens_per_second"] * training["train_runtime"] == pytest.approx(6 * tokens)
    assert training["pairs_per_second"] * training["train_runtime"] == pytest.approx(48)


def test_a_frozen_backbone_reads_no_tokens(tmp_path: Path, tiny_model: Path) -> None:
    model = {"base": str(tiny_model), "freeze": "backbone", "head": {"dim": 8}}
    result, _ = run(tmp_path, tiny_model, model=model)
    training = report_of(result)["training"]
    assert training["tokens_per_second"] is None and training["pairs_per_second"] > 0


def test_figures_of_an_interrupted_run_are_whole(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = trained(config(tmp_path, tiny_model, train=EVERY_TWO))
    killed = config(tmp_path, tiny_model, output_dir=str(tmp_path / "killed"), train=EVERY_TWO)
    with killed_in_step(8):
        trained(killed)
    (checkpoint,) = (tmp_path / "killed" / "checkpoints").glob("checkpoint-6")
    progress = json.loads((checkpoint / "progress.json").read_text())
    assert progress["tokens"] > 0 and progress["peak_memory_bytes"] > 0
    resumed, _ = trained(killed)
    one, other = (report_of(result)["training"] for result in (whole, resumed))

    def tokens(training: Any) -> float:
        return float(training["tokens_per_second"] * training["train_runtime"])

    assert tokens(other) == pytest.approx(tokens(one)) and tokens(one) > progress["tokens"]
    assert other["peak_memory_bytes"] >= progress["peak_memory_bytes"]
    with killed_in_any_step():
        again, _ = trained(killed)
    assert tokens(report_of(again)["training"]) == pytest.approx(tokens(one)), "nothing was trained twice"
    assert report_of(again)["final"] == report_of(resumed)["final"]


def test_a_part_that_counted_no_tokens_is_not_left_out_in_silence() -> None:
    before = Progress(rows=64, peak_memory_bytes=5).to_json()
    assert Progress.from_json(before) == Progress(rows=64, peak_memory_bytes=5)
    del before["tokens"], before["peak_memory_bytes"]
    assert Progress.from_json(before) == Progress(rows=64, tokens=None)


def test_peak_memory_is_at_least_the_weights(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model)
    training = report_of(result)["training"]
    assert training["device"] == "cpu" and training["processes"] == 1
    assert training["peak_memory_bytes"] > 50_000_000, "torch alone takes more"


def test_monitors_and_warnings_are_those_of_the_log(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    assert read_log(file) == []
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in ENTRIES))
    entries = read_log(file)
    assert monitors_of(entries) == [{"step": 2, "epoch": 0.5, "alignment": 0.25, "uniformity": None}]
    assert warnings_of(entries) == [{"step": 3, "warning": "the embeddings draw together"}]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """`key.inner[]` -> value, of everything that is no object and no list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


def documented() -> dict[str, str]:
    """Key -> type, of every table."""
    return dict(re.findall(r"^\| `([^`]+)` \| ([a-z ]+) \|", DOCS.read_text(), re.MULTILINE))


def as_pattern(key: str) -> re.Pattern[str]:
    """A key of the docs as a pattern: a word in capitals stands for a name of the run."""
    return re.compile(
        r"\.".join(
            ".+" if re.fullmatch("[A-Z]+", part.removesuffix("[]")) else re.escape(part)
            for part in key.split(".")
        )
    )


@pytest.fixture
def rich_report(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The report of a run that went on, with decisions of an eval set, and rows that were dropped or kept."""
    rows = [
        (f"the {one} saw a dog", "a dog", i % 2) for i, one in enumerate(("cat", "bird", "man", "fish") * 3)
    ]
    labelled = write_csv(tmp_path / "labelled.csv", ("sentence1", "sentence2", "label"), rows)
    with write_triplets(tmp_path, seed=3).open("a") as file:
        file.write('"",a cat,a dog\n')
    empty = write_csv(
        tmp_path / "empty.csv", ("anchor", "positive", "negative"), [("", "a cat", "a dog")] * 9
    )
    data = {
        "train": [
            {"source": str(tmp_path / "triplets3.csv")},
            {"source": str(empty), "policy": {"empty_text": "keep"}},
        ],
        "no_duplicates": False,
        "eval": [
            {"name": "pairs", "task": "sts", "source": str(write_scored(tmp_path)), "score_range": [0, 5]},
            {"name": "labels", "task": "pair_classification", "source": str(labelled)},
        ],
    }
    settings = config(tmp_path, tiny_model, data=data, train=EVERY_TWO)
    with killed_in_step(4):
        trained(settings)
    monkeypatch.setattr(report_module, "read_log", lambda file: ENTRIES)
    result, _ = trained(settings)
    return report_of(result)


def test_every_key_of_the_report_is_documented_and_every_documented_key_is_there(rich_report: Any) -> None:
    told = documented()
    assert len(told) > 50
    found: dict[str, list[Any]] = {}
    for path, value in leaves(rich_report):
        names = [key for key in told if as_pattern(key).fullmatch(path)]
        assert names, f"{path} is not in docs/report.md"
        exact = [key for key in names if key == path]  # a name in capitals would take any other
        found.setdefault((exact or names)[0], []).append(value)
    missing = {key for key, kind in told.items() if kind != "null"} - set(found)
    assert missing == set(), "documented, but not in the report"
    for key, values in found.items():
        types = tuple(TYPES[word] for word in told[key].split(" or "))
        flat = tuple(t for one in types for t in (one if isinstance(one, tuple) else (one,)))
        assert all(
            isinstance(value, flat) and isinstance(value, bool) == (flat == (bool,)) for value in values
        ), key


def test_the_report_says_with_what_it_was_made(rich_report: Any) -> None:
    assert rich_report["schema"] == 1
    assert rich_report["versions"] == describe_environment()
    assert rich_report["verdict"].endswith(".") and "pairs" in rich_report["verdict"]
