"""The range test finds the rate at which a loss falls fastest, and leaves everything as it was."""

import hashlib
import json
import math
import random
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sbert_train.cli import app
from sbert_train.config import dump_config
from sbert_train.errors import CommandError, ConfigError, TrainingError
from sbert_train.training import faults
from sbert_train.training.arguments import training_arguments
from sbert_train.training.find_lr import (
    FORCED,
    HIGHEST,
    LOWEST,
    FoundLr,
    RangeTest,
    find_lr,
    range_test,
    summary,
)
from sbert_train.training.find_lr_curve import suggest
from sbert_train.training.find_lr_plot import plot
from sbert_train.training.fit import fit
from sbert_train.training.parts import load_parts
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.trainer import SentenceTrainer
from tests.training.runs import config, write_triplets

RATES = tuple(np.geomspace(LOWEST, HIGHEST, 100))
MEASURED = [
    0.29, 0.68, 0.53, 0.42, 0.76, 0.89, 0.75, 0.21, 0.32, 0.61, 0.75, 0.75, 1.25, 0.67,
    0.65, 0.48, 1.07, 0.46, 0.23, 0.47, 0.56, 0.40, 0.48, 0.31, 0.76, 0.55, 0.85, 0.77,
    0.80, 0.79, 0.37, 1.10, 0.38, 0.72, 0.46, 0.25, 0.30, 0.70, 1.05, 0.29, 0.35, 0.33,
    0.58, 0.36, 0.14, 0.31, 0.86, 0.34, 0.43, 0.31, 0.48, 0.22, 0.11, 0.37, 0.70, 0.57,
    0.23, 0.13, 0.23, 0.31, 0.29, 0.96, 0.64, 0.55, 0.45, 0.39, 0.89, 1.87, 2.16, 2.64,
]  # fmt: skip
"""Losses of all-MiniLM-L6-v2 on 200 triplets of builtin:contrast in batches of 8. Their steepest place, smoothed, is on
the back of a bump at 1.4e-6."""


def falling(at: float, width: float = 1.0) -> list[float]:
    """A loss that falls fastest at a rate, by a logistic curve over the logarithm."""
    return [1 / (1 + math.exp((math.log10(rate) - math.log10(at)) / (0.2 * width))) for rate in RATES]


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("at", [1e-5, 1e-3, 1e-2])
def test_the_suggestion_is_where_the_loss_falls_fastest(at: float) -> None:
    found = suggest(RATES, falling(at))
    assert found is not None and found == pytest.approx(at, rel=0.2)


def test_noise_moves_the_suggestion_little_and_what_comes_behind_the_lowest_loss_not_at_all() -> None:
    noise = np.random.default_rng(0).normal(scale=0.03, size=100)
    losses = [loss + one for loss, one in zip(falling(1e-3, 3.0), noise, strict=True)]
    found = suggest(RATES, losses)
    assert found is not None and 3e-4 < found < 3e-3
    beyond = [3.0 if rate > 0.1 else loss for rate, loss in zip(RATES, falling(1e-3), strict=True)]
    beyond[-5:] = [2.0] * 5  # it falls here, too, but has been lower before
    assert suggest(RATES, beyond) == suggest(RATES, falling(1e-3))


@pytest.mark.parametrize(
    "losses",
    [
        [1.0] * 100,
        [1.0 + i / 100 for i in range(100)],
        (1.0 + np.random.default_rng(1).normal(scale=0.1, size=100)).tolist(),
        [1.0],
    ],
    ids=["flat", "rising", "noise", "one step"],
)
def test_a_loss_that_never_fell_gives_no_suggestion(losses: list[float]) -> None:
    assert suggest(RATES[: len(losses)], losses) is None


def sweep(scatter: float, seed: int) -> tuple[tuple[float, ...], list[float]]:
    """Rates and losses: flat at 1, down to 0.4 from 1e-5 to 1e-3, mostly, and up from 1e-2 until they diverge."""
    logs = np.log10(RATES)
    curve = 1 - 0.6 / (1 + np.exp(-3 * (logs + 4))) + 2 * np.maximum(0, logs + 2) ** 2
    losses = (curve + np.random.default_rng(seed).normal(scale=scatter, size=100))[curve < 1.6]
    return RATES[: len(losses)], losses.tolist()


@pytest.mark.parametrize(
    ("scatter", "within"), [(0.0, 50), (0.05, 50), (0.1, 50), (0.2, 50), (0.3, 49), (0.4, 45)]
)
def test_bumps_of_the_noise_are_not_taken_for_the_fall(scatter: float, within: int) -> None:
    found = [suggest(*sweep(scatter, seed)) for seed in range(50)]
    assert sum(one is not None and 1e-5 < one < 1e-3 for one in found) >= within


@pytest.mark.parametrize("scatter", [0.01, 0.1, 0.4])
def test_noise_alone_gives_no_suggestion_though_it_diverge(scatter: float) -> None:
    found = []
    for seed in range(50):
        losses = 1 + np.random.default_rng(seed).normal(scale=scatter, size=100)
        found.append(suggest(RATES, losses.tolist()))
        losses[70:] += np.arange(30) * 0.1
        found.append(suggest(RATES, losses.tolist()))
    assert sum(one is not None for one in found) <= 3


def test_that_it_is_too_noisy_to_tell_is_said_and_that_it_never_fell_only_where_that_can_be_told(
    tmp_path: Path,
) -> None:
    def said(losses: list[float]) -> str:
        assert suggest(RATES[: len(losses)], losses) is None
        test = RangeTest(RATES[: len(losses)], tuple(losses), tuple(losses), None, None)
        return summary(FoundLr(test, tmp_path, tmp_path, True), "x.yaml")[-1]

    alone = np.random.default_rng(1).normal(size=100)
    assert said((1 + 0.4 * alone).tolist()).startswith(
        "suggestion none: the loss is too noisy to tell: a larger batch helps"
    )
    assert "never fell" in said((1 + 0.05 * alone).tolist())
    apart = 1 + 0.05 * alone
    apart[80:] += np.arange(20) ** 2
    assert "never fell" in said(apart.tolist()), "that it diverged is no noise"
    assert "too noisy" in said(MEASURED), "a fall may be there, from 1e-5 on"


def test_weights_random_numbers_and_modes_are_as_before(tmp_path: Path, tiny_model: Path) -> None:
    settings = config(tmp_path, tiny_model)
    args = training_arguments(settings, **FORCED, max_steps=20)
    parts = load_parts(settings, args)
    model = parts.model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    numbers = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
    test = range_test(parts, args, highest=0.1, steps=20)
    assert len(test.losses) == 20 and test.losses[-1] != pytest.approx(test.losses[0], rel=0.1), (
        "it did train"
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert all(weight.grad is None for weight in model.parameters())
    assert torch.equal(torch.get_rng_state(), numbers[0]) and random.getstate() == numbers[1]
    assert np.random.get_state()[1].tolist() == numbers[2]  # type: ignore[index]
    again = range_test(parts, args, highest=0.1, steps=20)
    assert again == test, "also the order of batches"


def test_the_rates_are_those_of_the_optimizer(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []
    inner = SentenceTrainer.training_step

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        used.append(self.optimizer.param_groups[0]["lr"])
        return inner(self, *args, **kwargs)

    monkeypatch.setattr(SentenceTrainer, "training_step", training_step)
    settings = config(tmp_path, tiny_model, train={"lr_scheduler_type": "reduce_lr_on_plateau"})
    found = find_lr(settings, say=lambda line: None).test
    assert used[: len(found.losses)] == pytest.approx(found.learning_rates)
    assert found.learning_rates[0] == LOWEST and found.learning_rates[-1] <= HIGHEST * 1.001


@pytest.mark.parametrize("value", [float("nan"), 1e3])
def test_a_loss_that_diverges_ends_the_sweep_and_is_no_error(
    value: float, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, seen = SiameseModel.forward, [0]

    def forward(self: Any, batch: Any) -> Any:
        seen[0] += 1
        loss, vectors = inner(self, batch)
        return (loss * value if seen[0] > 30 else loss), vectors

    monkeypatch.setattr(SiameseModel, "forward", forward)
    found = find_lr(config(tmp_path, tiny_model), say=lambda line: None).test
    assert len(found.losses) == (30 if math.isnan(value) else 31)
    assert found.diverged_at == pytest.approx(RATES[30])


def test_a_first_loss_that_is_no_number_is_an_error(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = SiameseModel.forward

    def forward(self: Any, batch: Any) -> Any:
        loss, vectors = inner(self, batch)
        return loss * float("nan"), vectors

    monkeypatch.setattr(SiameseModel, "forward", forward)
    with pytest.raises(TrainingError, match="the loss of step 1 is nan"):
        find_lr(config(tmp_path, tiny_model), say=lambda line: None)
    assert not (tmp_path / "run").exists()


def test_too_little_memory_is_an_error(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(self: Any, batch: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(SiameseModel, "forward", forward)
    with pytest.raises(TrainingError, match="out of memory in step 1") as told:
        find_lr(config(tmp_path, tiny_model), say=lambda line: None)
    assert not isinstance(told.value, faults.Diverged) and not (tmp_path / "run").exists()


def test_a_run_begins_where_rates_were_tried_and_its_files_are_left_alone(
    tmp_path: Path, tiny_model: Path
) -> None:
    settings = config(tmp_path, tiny_model, train={"max_steps": 2})
    folder = tmp_path / "run"
    find_lr(settings, say=lambda line: None)
    assert sorted(hashes(folder)) == ["find_lr.json", "find_lr.svg"]
    tried = hashes(folder)
    alone = config(tmp_path, tiny_model, output_dir=str(tmp_path / "alone"), train={"max_steps": 2})
    fit(alone, say=lambda line: None)
    fit(settings, say=lambda line: None)
    assert hashes(folder).items() >= tried.items(), "the run leaves them"
    assert hashes(folder)["model/model.safetensors"] == hashes(tmp_path / "alone")["model/model.safetensors"]
    ran = hashes(folder)
    find_lr(settings, say=lambda line: None)
    assert hashes(folder) == ran, "nothing else was touched, and the same was found"
    fit(settings, resume="never", say=lambda line: None)
    assert hashes(folder).items() >= tried.items()


def test_the_plot_is_a_picture_that_needs_nothing_else_and_marks_the_suggestion() -> None:
    test = RangeTest(RATES, tuple(falling(1e-3)), tuple(falling(1e-3)), 1e-3, None)
    picture = plot(test)
    root = ET.fromstring(picture)
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"1e{power}" for power in range(-7, 1)} <= set(texts) and "suggestion 1.0e-03" in texts
    assert "prefers-color-scheme: dark" in picture
    assert "href" not in picture and "url(" not in picture and "script" not in picture
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for curve in root.iter("{http://www.w3.org/2000/svg}polyline"):
        points = [tuple(map(float, point.split(","))) for point in curve.attrib["points"].split()]
        assert len(points) == 100 and all(0 <= x <= width and 0 <= y <= height for x, y in points)
    none = RangeTest(RATES[:1], (1.0,), (1.0,), None, None)
    assert "suggestion" not in plot(none) and ET.fromstring(plot(none)) is not None


def test_the_command_prints_the_next_one(tmp_path: Path, tiny_model: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(dump_config(config(tmp_path, tiny_model)), encoding="utf-8")
    done = CliRunner().invoke(
        app, ["fit", "--config", str(file), "--find-lr", "seed=7", "train.learning_rate=1"]
    )
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "run" / "find_lr.json").read_text())
    assert set(found) == {"learning_rates", "losses", "smoothed", "suggestion", "diverged_at"}
    rate = f"{found['suggestion']:.1e}"
    assert f"sbert-train fit --config {file} seed=7 train.learning_rate={rate}\n" in done.output
    assert "nothing was trained" in done.output and not (tmp_path / "run" / "model").exists()


def test_the_command_can_be_pasted_whatever_the_names_are(tmp_path: Path, tiny_model: Path) -> None:
    file = tmp_path / "my run's.yaml"
    file.write_text(dump_config(config(tmp_path, tiny_model)), encoding="utf-8")
    others = [
        "data.eval.0.score_range=[0, 10]",
        "train.max_steps=1",
        f"output_dir={tmp_path / 'of $HOME & more'}",
    ]
    done = CliRunner().invoke(app, ["fit", "--config", str(file), "--find-lr", *others])
    assert done.exit_code == 0, done.output
    program, *command = shlex.split(done.output.splitlines()[-1])
    assert program == "sbert-train" and command[:-1] == ["fit", "--config", str(file), *others]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "of $HOME & more" / "model").is_dir()


def test_no_suggestion_is_said(tmp_path: Path) -> None:
    found = FoundLr(RangeTest(RATES[:2], (1.0, 2.0), (1.0, 2.0), None, 1e-6), tmp_path, tmp_path, True)
    assert summary(found, "x.yaml")[-1].startswith(
        "suggestion none: the loss never fell; look at model.freeze"
    )
    assert "diverged at 1.0e-06" in summary(found, "x.yaml")[1]


@pytest.mark.parametrize(
    "option",
    [["--overwrite"], ["--resume", "never"], ["--strict"], ["--allow-changes", "seed"], ["--seeds", "1,2"]],
)
def test_what_belongs_to_a_training_is_refused_beside_it(option: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fit", "--config", "quickstart", "--find-lr", *option])
    assert isinstance(done.exception, CommandError) and "--find-lr trains nothing" in str(done.exception)


def test_the_folder_of_somebody_else_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "run").mkdir()
    write_triplets(tmp_path / "run")
    with pytest.raises(ConfigError, match="holds files that are not those of a run"):
        find_lr(config(tmp_path, tiny_model))
