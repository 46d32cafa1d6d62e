"""A run with several seeds: they truly differ in what a seed draws, each is repeated alone, and a series goes on."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from sbert_train.cli import main
from sbert_train.commands.seeds import _print_next_of_series
from sbert_train.config import RunConfig, dump_config, load_config
from sbert_train.errors import ConfigError
from sbert_train.model.dropout import dropout
from sbert_train.reporting.seeds import series_of
from sbert_train.training.seeds import SeriesResult, fit_seeds
from sbert_train.training.trainer import SentenceTrainer
from tests.reporting.finished import change, eval_set, finished
from tests.training.interruptions import EVERY_TWO, killed_in_any_step, killed_in_step, trained, weights_of
from tests.training.runs import config, write_triplets
from tests.training.test_signals import in_step, told
from tests.training.test_two_processes import torchrun

HEAD = {"dim": 16, "dropout": 0.1}
SHORT: dict[str, Any] = {"max_steps": 3}


def settings_of(folder: Path, base: Path, **train: Any) -> RunConfig:
    return config(folder, base, model={"base": str(base), "head": HEAD}, train={**SHORT, **train})


def series(settings: RunConfig, *seeds: int, **options: Any) -> tuple[SeriesResult, list[str]]:
    lines: list[str] = []
    return fit_seeds(settings, seeds, say=lines.append, **options), lines


def steps_by_seed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(seed, step) of each step that is trained from now on."""
    found: list[tuple[int, int]] = []
    inner = SentenceTrainer.training_step

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        found.append((self.args.seed, self.state.global_step + 1))
        return inner(self, *args, **kwargs)

    monkeypatch.setattr(SentenceTrainer, "training_step", training_step)
    return found


def test_data_order_new_weights_and_dropout_follow_from_the_seed_and_from_nothing_else(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[tuple[str, int], dict[str, bytes]] = {}
    inner, name = SentenceTrainer.compute_loss, "first"

    def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 0:
            batch = inputs["batch"]
            state = torch.get_rng_state()
            one, two = (self.encoder.pool(batch).detach() for _ in range(2))
            assert not torch.equal(one, two), "the premise: dropout is on"
            torch.set_rng_state(state)
            mask = dropout(torch.ones(2048), 0.5)
            torch.set_rng_state(state)
            drawn[name, self.args.seed] = {
                "order": batch.input_ids.numpy().tobytes(),
                "head": self.encoder.head[0].linear.weight.detach().numpy().tobytes(),
                "dropout": mask.numpy().tobytes(),
            }
        return inner(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(SentenceTrainer, "compute_loss", compute_loss)
    settings = settings_of(tmp_path, tiny_model)
    series(settings, 1, 2)
    name = "other order"
    series(settings.model_copy(update={"output_dir": str(tmp_path / "again")}), 2, 1)
    for what in ("order", "head", "dropout"):
        assert drawn["first", 1][what] != drawn["first", 2][what], what
        assert all(drawn["first", seed][what] == drawn["other order", seed][what] for seed in (1, 2)), what
    for seed in (1, 2):
        one, two = (weights_of(tmp_path / run / f"seed-{seed}" / "model") for run in ("run", "again"))
        assert one == two
    assert weights_of(tmp_path / "run/seed-1/model") != weights_of(tmp_path / "run/seed-2/model")


def test_each_seed_is_a_run_that_its_configuration_repeats_alone(tmp_path: Path, tiny_model: Path) -> None:
    result, lines = series(settings_of(tmp_path, tiny_model), 5, 3)
    assert [line for line in lines if line.startswith("seed ")] == [
        f"seed       5 of 5, 3: {tmp_path}/run/seed-5",
        f"seed       3 of 5, 3: {tmp_path}/run/seed-3",
    ]
    alone = load_config(result.root / "seed-3" / "config.yaml")
    assert alone.seed == 3
    again, _ = trained(alone.model_copy(update={"output_dir": str(tmp_path / "alone")}))
    assert weights_of(again.folder.model) == weights_of(result.root / "seed-3" / "model")


def test_the_figures_of_the_series_are_those_of_the_runs(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = series(settings_of(tmp_path, tiny_model), 1, 2, 3)
    told = json.loads((result.root / "seeds.json").read_text())
    assert told["seeds"] == [1, 2, 3] and told["selected_by"] == "pairs_spearman_cosine"
    (one,) = told["evaluation"]
    reports = [
        json.loads((result.root / told["runs"][str(s)] / "report.json").read_text()) for s in (1, 2, 3)
    ]
    for metric, figures in one["metrics"].items():
        scores = [report["evaluation"]["tasks"][0]["scores"] for report in reports]
        after = [score["after"][metric]["value"] for score in scores]
        before = [score["before"][metric]["value"] for score in scores]
        assert list(figures["values"].values()) == after
        assert figures["mean"] == pytest.approx(np.mean(after), rel=1e-12)
        assert figures["standard_deviation"] == pytest.approx(np.std(after, ddof=1), rel=1e-9)
        assert figures["gain"] == pytest.approx(np.mean(np.subtract(after, before)), rel=1e-9)
        assert figures["noise"] == (abs(figures["gain"]) < figures["spread"])
    values = one["metrics"]["spearman_cosine"]["values"]
    assert values[str(told["best_seed"])] == max(values.values())


def test_the_best_seed_of_a_metric_that_should_be_small_has_the_smallest(
    tmp_path: Path, tiny_model: Path
) -> None:
    result, _ = series(settings_of(tmp_path, tiny_model, greater_is_better="no"), 1, 2)
    told = json.loads((result.root / "seeds.json").read_text())
    values = told["evaluation"][0]["metrics"]["spearman_cosine"]["values"]
    assert values[str(told["best_seed"])] == min(values.values()) < max(values.values())


@pytest.mark.slow
def test_a_series_that_was_killed_goes_on_where_it_was(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, tiny_model, **{**EVERY_TWO, "max_steps": 6})
    whole, _ = series(settings.model_copy(update={"output_dir": str(tmp_path / "whole")}), 1, 2)
    trained(settings.for_seed(1))
    with killed_in_step(5):
        series(settings, 1, 2)
    assert not (tmp_path / "run" / "seeds.json").exists()
    found = steps_by_seed(monkeypatch)
    result, lines = series(settings, 1, 2)
    assert found == [(2, 5), (2, 6)]
    assert lines[0] == f"seed       1 of 1, 2: {tmp_path}/run/seed-1, finished, so it is not trained again"
    for seed in (1, 2):
        assert weights_of(result.root / f"seed-{seed}/model") == weights_of(whole.root / f"seed-{seed}/model")
    told, expected = (json.loads((root / "seeds.json").read_text()) for root in (result.root, whole.root))
    assert told == expected


@pytest.mark.parametrize(
    "save",
    [pytest.param("epoch", id="with checkpoints", marks=pytest.mark.slow), pytest.param("no", id="without")],
)
def test_finished_seeds_are_not_trained_again_and_more_may_be_added(
    save: str, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = {"save_strategy": save, "eval_strategy": save, "load_best_model_at_end": save != "no"}
    settings = settings_of(tmp_path, tiny_model, **train)
    series(settings, 1, 2)
    with killed_in_any_step():
        again, _ = series(settings, 1, 2)
    assert again.series is not None and list(again.series.runs) == [1, 2]
    found = steps_by_seed(monkeypatch)
    more, _ = series(settings, 1, 2, 3)
    assert {seed for seed, _ in found} == {3}
    assert more.series is not None and list(more.series.runs) == [1, 2, 3]
    for options in ({"resume": "never"}, {"overwrite": True}):
        found.clear()
        series(settings, 1, 2, **options)
        assert {seed for seed, _ in found} == {1, 2}


def test_a_series_does_not_go_on_with_other_rows_or_another_configuration(
    tmp_path: Path, tiny_model: Path
) -> None:
    settings = settings_of(tmp_path, tiny_model)
    series(settings, 1, 2)
    write_triplets(tmp_path, 40)  # in place of those before
    with pytest.raises(ConfigError, match=r"data of train triplets0: .* in checkpoint-3"):
        series(settings, 1, 2, 3)
    write_triplets(tmp_path)
    with killed_in_any_step():
        series(settings, 1, 2)
    other = settings_of(tmp_path, tiny_model, learning_rate=1e-4)
    with pytest.raises(ConfigError, match=r"train\.learning_rate: 0\.001 in checkpoint-3, 0\.0001 now"):
        series(other, 1, 2)


def test_a_seed_of_another_configuration_is_told_before_the_first_is_trained(
    tmp_path: Path, tiny_model: Path
) -> None:
    unsaved = {"save_strategy": "no", "eval_strategy": "no", "load_best_model_at_end": False}
    trained(settings_of(tmp_path, tiny_model, **unsaved).for_seed(2))
    with killed_in_any_step(), pytest.raises(ConfigError, match=r"run/seed-2 holds a run with another"):
        series(settings_of(tmp_path, tiny_model, **unsaved, learning_rate=1e-4), 1, 2)


def a_run(settings: RunConfig) -> None:
    trained(settings)


def a_thesis(settings: RunConfig) -> None:
    Path(settings.output_dir).mkdir()
    (Path(settings.output_dir) / "thesis.tex").touch()


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (
            a_run,
            "holds a run; --seeds makes one run for each seed below output_dir, so choose another folder",
        ),
        (a_thesis, "holds thesis.tex, which is not of a series of seeds"),
    ],
)
def test_a_folder_of_something_else_is_refused_also_with_overwrite(
    before: Callable[[RunConfig], None], words: str, tmp_path: Path, tiny_model: Path
) -> None:
    settings = settings_of(tmp_path, tiny_model)
    before(settings)
    files = sorted(tmp_path.rglob("*"))
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match=words):
            series(settings, 1, 2, overwrite=overwrite)
    assert sorted(tmp_path.rglob("*")) == files


def test_a_run_is_not_made_in_the_folder_of_a_series(tmp_path: Path, tiny_model: Path) -> None:
    settings = settings_of(tmp_path, tiny_model)
    series(settings, 1, 2)
    with pytest.raises(ConfigError, match="holds files that are not those of a run"):
        trained(settings)


@pytest.mark.parametrize(
    ("blocks", "options", "words"),
    [
        ({"train": {"seed": 42}}, {}, "train.seed: leave it out, as --seeds gives each run its own"),
        ({"data": {"eval": []}}, {}, "data.eval: --seeds compares runs by their figures; add an eval set"),
        ({}, {"resume": "x/checkpoint-3"}, "--resume x/checkpoint-3: a checkpoint is of one run"),
    ],
)
def test_what_does_not_go_with_seeds_is_told(
    blocks: dict[str, Any], options: dict[str, Any], words: str, tmp_path: Path, tiny_model: Path
) -> None:
    tree = settings_of(tmp_path, tiny_model).model_dump()
    for block, values in blocks.items():
        tree[block] = {**tree[block], **values}
    with pytest.raises(ConfigError, match=words.replace("--", "-+")):
        series(RunConfig.model_validate(tree), 1, 2, **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seeds", "1"], "--seeds 1: expected two or more whole numbers with commas, such as 1,2,3"),
        (["--seeds", ""], "--seeds '': expected two or more whole numbers with commas, such as 1,2,3"),
        (["--seeds", "1, 2"], "--seeds '1, 2': expected two or more whole numbers"),
        (["--seeds", "1,-2"], "--seeds 1,-2: expected two or more whole numbers"),
        (["--seeds", "1,2.5"], "--seeds 1,2.5: expected two or more whole numbers"),
        (["--seeds", "1,2,1"], "--seeds 1,2,1: 1 is named twice"),
        (["--seeds", "1,01"], "--seeds 1,01: 1 is named twice"),
        (["--seeds", "1,4294967296"], "expected numbers below 4294967296, found 4294967296"),
        (["--seeds", "1,2", "seed=3"], "seed=3: leave it out, as --seeds gives each run its own"),
        (["--seeds", "1,2", "train.seed=3"], "train.seed=3: leave it out"),
        (["--seeds", "1,2", "--resume", "x"], "--resume x: a checkpoint is of one run"),
    ],
)
def test_seeds_that_are_none_are_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert start(config_file(tmp_path, tiny_model), monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("sbert-train: ") and words in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def config_file(folder: Path, base: Path, **train: Any) -> Path:
    file = folder / "run.yaml"
    file.write_text(yaml.safe_dump(settings_of(folder, base, **train).model_dump(mode="json")))
    return file


def start(file: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["sbert-train", "fit", "--config", str(file), *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_ctrl_c_ends_a_series_and_the_same_command_goes_on_and_tells_the_table(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = config_file(tmp_path, tiny_model, max_steps=4)
    with in_step(2, told(signal.SIGINT)):
        assert start(file, monkeypatch, "--seeds", "1,2") == 130
    error = capsys.readouterr().err
    saved = tmp_path / "run" / "seed-1" / "checkpoints" / "checkpoint-2"
    assert f"sbert-train: seed 1: stopped by Ctrl-C after step 2 of 4, which is saved in {saved}" in error
    assert "give the same command again to go on" in error
    assert start(file, monkeypatch, "--seeds", "1,2") == 0
    said = capsys.readouterr().out
    assert "resume     from step 2" in said and "after, 2 seeds" in said and "over seeds" in said
    best = json.loads((tmp_path / "run" / "seeds.json").read_text())["best_seed"]
    models = [str(tmp_path / "run" / f"seed-{seed}" / "model") for seed in (1, 2)]
    assert f"That of seed {best} is the best by pairs_spearman_cosine" in said
    assert f"  sbert-train eval {tiny_model} {' '.join(models)} --data my_pairs.csv\n" in said
    assert f"  sbert-train compare {' '.join(str(Path(model).parent) for model in models)}\n" in said
    assert f"  sbert-train export {models[best - 1]} --to onnx" in said


def test_the_closing_lines_name_no_best_where_all_seeds_are_equal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sbert_train.commands.seeds.print_uses", print)
    for second, is_told in ((0.82, False), (0.83, True)):
        runs = {
            seed: finished(f"seed-{seed}", eval_set(spearman=change(0.8, after)), selected_by="stsb_spearman")
            for seed, after in ((1, 0.82), (2, second))
        }
        _print_next_of_series(SeriesResult(tmp_path, "org/base", series_of(runs)))
        said = capsys.readouterr().out
        assert ("is the best by stsb_spearman" in said) == is_told
        assert ("best" in said) == is_told
        assert said.endswith(f"{tmp_path}/seed-{2 if is_told else 1}/model\n")


def test_the_folder_of_a_seed_keeps_names_of_the_environment(tmp_path: Path, tiny_model: Path) -> None:
    tree = settings_of(tmp_path, tiny_model).model_dump(mode="json")
    tree |= {"output_dir": "${OUT}", "seed": "${SEED}"}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(tree))
    environ = {"OUT": "secret/place", "SEED": "4"}
    one = load_config(tmp_path / "run.yaml", environ=environ).for_seed(7)
    assert (one.output_dir, one.seed) == ("secret/place/seed-7", 7)
    assert one.as_written(("output_dir",), one.output_dir) == "${OUT}/seed-7"
    (tmp_path / "one.yaml").write_text(dump_config(one))
    assert load_config(tmp_path / "one.yaml", environ=environ).model_dump() == one.model_dump()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_processes_make_a_series_and_one_of_them_writes(tmp_path: Path, tiny_model: Path) -> None:
    settings = settings_of(tmp_path, tiny_model)
    for times in range(2):
        done = torchrun(settings, "-m", "sbert_train", options=["--seeds", "1,2"])
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("after, 2 seeds") == 1
        assert done.stdout.count("so it is not trained again") == 2 * times
    assert json.loads((tmp_path / "run" / "seeds.json").read_text())["seeds"] == [1, 2]
