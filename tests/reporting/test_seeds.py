"""Figures over seeds are numpy's, and a gain is called noise where it is smaller than the spread, and only there."""

import json
from collections.abc import Sequence

import numpy as np
import pytest

from sbert_train.errors import EvaluationError
from sbert_train.reporting.seeds import OverSeeds, Series, series_of
from tests.reporting.finished import change, eval_set, finished


def over(afters: Sequence[float], befores: Sequence[float] | None = None) -> OverSeeds:
    pairs = zip(befores or [0.8] * len(afters), afters, strict=True)
    return OverSeeds({seed: change(*pair) for seed, pair in enumerate(pairs, start=1)})


def series(*afters: float, selected_by: str | None = "stsb_spearman", better: bool = True) -> Series:
    runs = {
        seed: finished(f"seed-{seed}", eval_set(spearman=change(0.8, after)), selected_by=selected_by)
        for seed, after in zip((7, 3, 11), afters, strict=False)
    }
    return series_of(runs, greater_is_better=better)


@pytest.mark.parametrize(
    "befores", [None, [0.8, 0.75, 0.82, 0.79]], ids=["one base", "a base that varies by seed"]
)
def test_mean_and_standard_deviation_are_those_of_numpy(befores: list[float] | None) -> None:
    afters = [0.8123, 0.8345, 0.8011, 0.8456]
    found, gains = over(afters, befores), np.subtract(afters, befores or 0.8)
    assert found.mean == pytest.approx(np.mean(afters), rel=1e-15)
    assert found.standard_deviation == pytest.approx(np.std(afters, ddof=1), rel=1e-12)
    assert found.baseline == pytest.approx(np.mean(befores or 0.8))
    assert found.gain == pytest.approx(np.mean(gains)) == pytest.approx(found.mean - found.baseline)
    assert found.spread == pytest.approx(np.std(gains, ddof=1), rel=1e-12)
    assert (found.spread == pytest.approx(found.standard_deviation)) == (befores is None)


@pytest.mark.parametrize(
    ("afters", "noise", "verdict"),
    [
        ([0.81, 0.82, 0.83], False, "the gain is not smaller than the spread over seeds (+0.0200, spread 0.0100)"),
        (
            [0.79, 0.80, 0.84],
            True,
            "noise: the gain is smaller than the spread over seeds (+0.0100, spread 0.0265); 1 of 3 seeds gained, "
            "1 lost",
        ),
        ([0.801, 0.81], True, "noise: the gain is smaller than the spread over seeds (+0.0055, spread 0.0064)"),
        ([0.77, 0.76], False, "the loss is not smaller than the spread over seeds (-0.0350, spread 0.0071)"),
        (
            [0.72, 0.82],
            True,
            "noise: the loss is smaller than the spread over seeds (-0.0300, spread 0.0707); 1 of 2 seeds gained, "
            "1 lost",
        ),
        (
            [0.82, 0.82, 0.7999],
            False,
            "the gain is not smaller than the spread over seeds (+0.0133, spread 0.0116); 2 of 3 seeds gained, "
            "1 lost",
        ),
        ([0.8, 0.8], False, "no change (+0.0000, spread 0.0000)"),
    ],
)  # fmt: skip
def test_a_gain_smaller_than_the_spread_is_noise(afters: list[float], noise: bool, verdict: str) -> None:
    found = over(afters)
    assert found.noise is noise
    assert found.verdict == verdict


def test_the_best_seed_is_that_of_the_metric_that_selects() -> None:
    assert series(0.81, 0.83, 0.82).best_seed == 3
    assert series(0.81, 0.83, 0.82, better=False).best_seed == 7
    assert series(0.81, 0.83, selected_by=None).best_seed is None


def test_of_seeds_that_are_all_equal_none_is_the_best() -> None:
    assert series(0.81, 0.81).best_seed is None and series(0.81, 0.81).to_json()["best_seed"] is None
    assert series(0.81, 0.81, 0.82).best_seed == 11
    assert series(0.82, 0.81, 0.82).best_seed == 7, "the first of two that are"


def test_the_json_has_the_keys_that_are_documented() -> None:
    told = json.loads(json.dumps(series(0.81, 0.83).to_json()))
    assert told["seeds"] == [7, 3] and told["runs"] == {"7": "seed-7", "3": "seed-3"}
    assert told["selected_by"] == "stsb_spearman" and told["best_seed"] == 3
    (one,) = told["evaluation"]
    assert list(one) == ["task", "kind", "primary_metric", "n", "unit", "fingerprint", "metrics"]
    figures = one["metrics"]["spearman"]
    assert figures["values"] == {"7": 0.81, "3": 0.83}
    assert figures["gains"] == pytest.approx({"7": 0.01, "3": 0.03})
    assert [figures[key] for key in ("baseline", "mean", "gain")] == pytest.approx([0.8, 0.82, 0.02])
    assert figures["noise"] is False


def test_seeds_of_other_examples_are_not_averaged() -> None:
    runs = {
        seed: finished(f"seed-{seed}", eval_set(spearman=change(0.8, 0.81), fingerprint=f"f{seed}"))
        for seed in (1, 2)
    }
    with pytest.raises(EvaluationError, match=r"runs/seed-1 and runs/seed-2 were not .* --overwrite"):
        series_of(runs)
