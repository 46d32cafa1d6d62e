"""What a run logs of its embedding space, and that training never notices."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import TrainerState

from sbert_train.data.sources import load_set
from sbert_train.evaluation.geometry import alignment, effective_rank, uniformity
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.objectives.registry import objective_spec
from sbert_train.reporting.monitors import MONITORS
from sbert_train.training import assembly, monitors
from sbert_train.training.monitors import ProbeSet, make_probe, read_probe
from sbert_train.training.objectives import RunObjectives
from sbert_train.training.run_log import MONITOR
from tests.training.interruptions import EVERY_TWO, killed_in_step, trained, weights_of
from tests.training.runs import config, log_of, run, sentences, write_csv, write_scored, write_triplets

IN_BATCH = {
    "monitor_alignment",
    "monitor_uniformity",
    "monitor_mean_cosine",
    "monitor_effective_rank",
    "monitor_similarity_std",
    "monitor_false_negatives",
}


def monitored(result: Any) -> list[dict[str, float]]:
    return [entry for entry in log_of(result) if "monitor_uniformity" in entry]


def texts_of(count: int) -> dict[str, list[str]]:
    """What `write_triplets` writes: fewer rows than a probe takes, so that it has all of them."""
    rows = sentences(count)
    return {"anchor": [row[0] for row in rows], "positive": [row[1] for row in rows]}


def only_training(folder: Path) -> dict[str, Any]:
    return {"train": [{"source": str(write_triplets(folder))}]}


def test_every_figure_has_a_name_and_a_phrase_for_the_page() -> None:
    assert {f"{MONITOR}{key}" for key in MONITORS} == IN_BATCH


def probe_of(path: Path, name: str, **options: Any) -> ProbeSet:
    loaded = load_set("x", str(path), score_range=options.pop("score_range", None))
    (one,) = make_probe([loaded], RunObjectives((objective_spec(name, **options),), (0,)))
    return one


def test_a_run_begins_with_the_base_and_is_measured_with_every_evaluation(
    tmp_path: Path, tiny_model: Path
) -> None:
    result, _ = run(tmp_path, tiny_model, train={"num_train_epochs": 2})
    log = log_of(result)
    assert [entry["step"] for entry in log if "eval_pairs_spearman_cosine" in entry] == [0, 6, 12]
    assert [entry["step"] for entry in monitored(result)] == [0, 6, 12]
    assert all(set(entry) - {"step", "epoch"} == IN_BATCH for entry in monitored(result))
    assert not any("warning" in entry for entry in log), "it is healthy"
    assert result.comparison is not None
    before = result.comparison.tasks[0].scores["before"]["spearman_cosine"].value
    assert log[0]["eval_pairs_spearman_cosine"] == before and (log[0]["step"], log[0]["epoch"]) == (0, 0)
    assert monitored(result)[0]["monitor_alignment"] != monitored(result)[1]["monitor_alignment"]


@pytest.mark.parametrize(
    ("train", "steps"),
    [
        ({"num_train_epochs": 2}, [0, 6, 12]),
        ({"num_train_epochs": 2, "logging_strategy": "epoch"}, [0, 6, 12]),
        ({"max_steps": 8}, [0, 6, 8]),
    ],
)
def test_a_run_without_evaluations_is_measured_after_each_epoch_and_at_its_end(
    tmp_path: Path, tiny_model: Path, train: dict[str, Any], steps: list[int]
) -> None:
    result, _ = run(tmp_path, tiny_model, data=only_training(tmp_path), train=train)
    assert [entry["step"] for entry in monitored(result)] == steps
    assert [entry["step"] for entry in log_of(result) if "loss" in entry][-1] == steps[-1], (
        "the loss is logged"
    )


def test_the_end_is_measured_where_the_last_step_is_not_evaluated(tmp_path: Path, tiny_model: Path) -> None:
    train = {"max_steps": 5, "eval_strategy": "steps", "eval_steps": 2}
    result, _ = run(tmp_path, tiny_model, train=train)
    assert [entry["step"] for entry in monitored(result)] == [0, 2, 4, 5]


def test_training_does_not_notice_that_it_is_measured(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, _ = run(tmp_path, tiny_model, train={"num_train_epochs": 2})
    assert len(monitored(watched)) == 3
    monkeypatch.setattr(assembly, "make_probe", lambda *_: ())
    alone, _ = run(tmp_path, tiny_model, output_dir=str(tmp_path / "alone"), train={"num_train_epochs": 2})
    assert monitored(alone) == []
    assert weights_of(alone.folder.model) == weights_of(watched.folder.model)
    dropout = SentenceEncoder.load(tiny_model).backbone.config.hidden_dropout_prob
    assert dropout > 0, "random numbers are drawn in training"


def test_the_first_figures_are_those_of_the_base(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model)
    texts = texts_of(48)
    encoder = SentenceEncoder.load(tiny_model)
    u, v = (encoder.encode(texts[role]) for role in ("anchor", "positive"))
    distinct = encoder.encode(list(dict.fromkeys(texts["positive"])))
    first = monitored(result)[0]
    assert first["monitor_alignment"] == pytest.approx(alignment(u, v), rel=1e-4)
    total = len(u) + len(distinct)
    for name, figure in (("uniformity", uniformity), ("effective_rank", effective_rank)):
        mean = (figure(u) * len(u) + figure(distinct) * len(distinct)) / total
        assert first[f"monitor_{name}"] == pytest.approx(mean, rel=1e-4)


def test_a_run_that_goes_on_does_not_log_its_base_again(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model, train={**EVERY_TWO, "eval_strategy": "steps", "eval_steps": 2})
    whole, _ = trained(config(tmp_path, tiny_model, output_dir=str(tmp_path / "whole"),
                              train={**EVERY_TWO, "eval_strategy": "steps", "eval_steps": 2}))  # fmt: skip
    with killed_in_step(8):
        trained(settings)
    result, _ = trained(settings)
    for key in ("eval_pairs_spearman_cosine", "monitor_uniformity"):
        figures = [(entry["step"], entry[key]) for entry in log_of(result) if key in entry]
        assert figures == [(entry["step"], entry[key]) for entry in log_of(whole) if key in entry]
        assert [step for step, _ in figures] == [0, 2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize(
    "blocks",
    [
        {"freeze": "backbone", "head": {"dim": 16}},
        {"freeze": "backbone", "head": {"dim": 16, "shared": False}},
        {"head": {"dim": 16, "shared": False}},
        {"prompts": {"anchor": "the cat ", "positive": "the dog "}},
    ],
    ids=["frozen", "two heads, frozen", "two heads", "prompts"],
)
def test_every_kind_of_model_is_measured_as_it_is_evaluated(
    tmp_path: Path, tiny_model: Path, blocks: dict[str, Any]
) -> None:
    data = only_training(tmp_path)  # and no evaluation, which would choose another model than the last
    result, _ = run(tmp_path, tiny_model, model={"base": str(tiny_model), **blocks}, data=data)
    tuned = SentenceEncoder.load(result.folder.model)
    texts = texts_of(48)
    u, v = (tuned.encode(texts[role], role=role) for role in ("anchor", "positive"))
    assert monitored(result)[-1]["monitor_alignment"] == pytest.approx(alignment(u, v), rel=1e-3)


def test_a_matryoshka_run_is_measured_at_all_dimensions(tmp_path: Path, tiny_model: Path) -> None:
    objective = {"name": "in_batch_negatives", "matryoshka_dims": [32, 8]}
    result, _ = run(tmp_path, tiny_model, objective=objective)
    assert all(set(entry) - {"step", "epoch"} == IN_BATCH for entry in monitored(result))
    plain, _ = run(tmp_path, tiny_model, output_dir=str(tmp_path / "plain"))
    assert monitored(result)[0] == monitored(plain)[0], "of 32 dimensions, not of the first 8"


def test_each_set_has_its_share_of_the_probe_and_at_least_some_rows(tmp_path: Path) -> None:
    large, small, tiny = (
        load_set(str(n), str(write_csv(tmp_path / f"{n}.csv", ("anchor", "positive"),
                                       [(f"a {i}", f"p {i}") for i in range(n)])))
        for n in (3000, 1000, 5)
    )  # fmt: skip
    objectives = RunObjectives((objective_spec("in_batch_negatives"),), (0, 0, 0))
    probe = make_probe([large, small, tiny], objectives)
    assert [len(one.left) for one in probe] == [96, 32, 5]
    assert all(a[2:] == p[2:] for one in probe for a, p in zip(one.left, one.right, strict=True))
    assert probe[0].left != tuple(f"a {i}" for i in range(96)), "a sample, not the first rows"
    again = make_probe([large, small, tiny], objectives)
    assert [one.left for one in again] == [one.left for one in probe]


def test_positives_are_pairs_labels_of_one_and_high_scores(tmp_path: Path) -> None:
    scored = probe_of(write_scored(tmp_path), "cosine_regression", score_range=[0, 5])
    wanted = {(row[0], row[1]): row[3] > 4 for row in sentences(24, 100)}
    assert scored.positive.tolist() == [wanted[pair] for pair in zip(scored.left, scored.right, strict=True)]
    assert 0 < scored.positive.sum() < len(scored.positive)
    labels = [(f"a {i}", f"b {i}", i % 2) for i in range(10)]
    path = write_csv(tmp_path / "labels.csv", ("sentence1", "sentence2", "label"), labels)
    assert probe_of(path, "contrastive").positive.tolist() == [False, True] * 5
    assert probe_of(path, "contrastive").target_mean is None, "cosines are not to equal its labels"
    assert scored.target_mean is not None
    low = [(f"a {i}", f"b {i}", 0.5 + i / 20) for i in range(11)]  # 0.5 to 1: the upper fifth is above 0.9
    lowest = write_csv(tmp_path / "low.csv", ("sentence1", "sentence2", "score"), low)
    assert probe_of(lowest, "cosine_regression").positive.sum() == 2
    assert not probe_of(path, "softmax").positive.any(), "classes are no positives"
    assert probe_of(write_triplets(tmp_path), "triplet").positive.all()


def test_what_a_run_has_not_is_absent(tmp_path: Path) -> None:
    def encode(texts: Sequence[str], role: str) -> np.ndarray:
        return np.random.default_rng(len(texts)).normal(size=(len(texts), 4)).astype(np.float32)

    labels = [(f"a {i}", f"b {i}", i % 3) for i in range(10)]
    path = write_csv(tmp_path / "labels.csv", ("sentence1", "sentence2", "label"), labels)
    pairs = read_probe([probe_of(path, "softmax")], encode).figures
    assert IN_BATCH - set(pairs) == {"monitor_alignment", "monitor_false_negatives"}
    single = read_probe([probe_of(path, "batch_triplet")], encode).figures
    assert set(single) == {"monitor_uniformity", "monitor_mean_cosine", "monitor_effective_rank"}


def test_the_norm_of_the_gradient_is_logged_where_nothing_is_cut_too(
    tmp_path: Path, tiny_model: Path
) -> None:
    result, _ = run(tmp_path, tiny_model, train={"max_grad_norm": 0})
    norms = [entry["grad_norm"] for entry in log_of(result) if "loss" in entry]
    assert len(norms) == 6 and all(norm > 0 for norm in norms)


def test_monitors_leave_what_is_due_at_the_end_of_an_epoch() -> None:
    """Premise of the test above: Trainer takes what was logged for done."""
    from transformers import TrainerControl, TrainingArguments

    logged: list[dict[str, float]] = []
    control = TrainerControl(should_log=True)

    def log(figures: dict[str, float]) -> None:
        logged.append(figures)
        control.should_log = False

    one = ProbeSet("x", ("a", "b"), (), ("anchor",), np.zeros(2, dtype=bool))
    watch = monitors.Monitors([one], lambda texts, role: np.eye(2, dtype=np.float32), log)
    watch.on_epoch_end(TrainingArguments(), TrainerState(global_step=3, max_steps=9), control)
    assert len(logged) == 1 and control.should_log
