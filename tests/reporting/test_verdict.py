"""The verdict says of each eval set what its interval allows to say, and no more."""

import pytest

from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.compare import Comparison, TaskComparison
from sbert_train.reporting.verdict import UNMEASURED, findings, verdict


def task(name: str, **changes: tuple[float, float, float]) -> TaskComparison:
    """An eval set with these differences: metric=(value, low, high); the first metric is its primary one."""
    after = {metric: Estimate(*change, resamples=1000) for metric, change in changes.items()}
    return TaskComparison(
        task=name, kind="sts", primary_metric=next(iter(changes)), n=9, unit="pairs", details={}, fingerprint="",
        scores={}, differences={"after": after},
    )  # fmt: skip


def said(*tasks: TaskComparison, selected_by: str | None = None) -> str:
    comparison = Comparison(models=("before", "after"), tasks=tasks, resamples=1000, seed=0)
    return verdict(findings(comparison, selected_by))


def test_a_gain_whose_interval_excludes_zero_is_better() -> None:
    assert said(task("stsb", rho=(0.0441, 0.0356, 0.0524))) == "Better on stsb by 0.044 [0.036, 0.052]."


def test_a_loss_is_told_by_its_size_the_smaller_bound_first() -> None:
    assert said(task("sick", rho=(-0.01, -0.015, -0.005))) == "Worse on sick by 0.010 [0.005, 0.015]."


@pytest.mark.parametrize("change", [(0.03, -0.001, 0.06), (-0.03, -0.06, 0.0), (0.0, 0.0, 0.0)])
def test_an_interval_that_reaches_zero_is_no_change_however_large(change: tuple[float, float, float]) -> None:
    assert said(task("quora", ap=change)).startswith("No change beyond chance on quora (")


def test_no_change_is_told_with_signs() -> None:
    found = said(task("quora", ap=(0.002, -0.0042, 0.007)))
    assert found == "No change beyond chance on quora (+0.002 [\N{MINUS SIGN}0.004, +0.007])."


def test_what_got_better_comes_first_and_what_did_not_change_last() -> None:
    sets = [
        task("same", rho=(0.0, -0.1, 0.1)),
        task("lost", rho=(-0.2, -0.3, -0.1)),
        task("won", rho=(0.2, 0.1, 0.3)),
    ]
    assert said(*sets) == (
        "Better on won by 0.200 [0.100, 0.300]; worse on lost by 0.200 [0.100, 0.300]; "
        "no change beyond chance on same (0.000 [\N{MINUS SIGN}0.100, +0.100])."
    )


def test_a_metric_that_selects_and_is_not_the_primary_one_is_told_too() -> None:
    one = task("search", ndcg=(0.1, 0.05, 0.15), mrr=(0.2, 0.1, 0.3), recall=(0.3, 0.2, 0.4))
    assert said(one) == "Better on search by 0.100 [0.050, 0.150]."
    assert said(one, selected_by="search_mrr") == (
        "Better on search by 0.100 [0.050, 0.150], search (mrr) by 0.200 [0.100, 0.300]."
    )
    chosen = findings(Comparison(("before", "after"), (one,), 1000, 0), "search_ndcg")
    assert [(found.metric, found.selects) for found in chosen] == [("ndcg", True)]


def test_a_bound_that_is_not_zero_does_not_look_like_it() -> None:
    assert said(task("stsb", rho=(0.00051, 0.00012, 0.00094))) == "Better on stsb by 0.0005 [0.0001, 0.0009]."


def test_without_eval_sets_it_says_that_nothing_was_measured() -> None:
    assert verdict(findings(None, None)) == UNMEASURED
