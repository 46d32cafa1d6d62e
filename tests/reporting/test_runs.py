"""What differs between runs is told, what does not is left out, and nothing is compared that is not the same."""

import json
import shlex
from typing import Any

import pytest

from sbert_train.reporting.runs import compare_runs
from tests.reporting.finished import change, eval_set, finished


def test_only_the_keys_that_differ_are_told_and_an_absent_one_has_no_value() -> None:
    compared = compare_runs(
        [
            finished("a", train={"learning_rate": 2e-5, "max_steps": 10}, seed=42),
            finished("b", train={"learning_rate": 3e-5, "max_steps": 10}, seed=42.0, head={"dim": 8}),
        ]
    )
    assert compared.config == {
        "train.learning_rate": {"a": 2e-5, "b": 3e-5},
        "head": {"b": {"dim": 8}},
    }


def test_what_is_of_another_kind_is_told_whole_and_not_again_by_its_parts() -> None:
    model: dict[str, Any] = {"base": "org/base", "prompts": {}}
    rows: dict[str, Any] = {"source": "x.csv", "where": {}}
    head, where = {"dim": 8, "layers": 2}, {"score": [1, 5], "split": "topic"}
    two_losses = {"name": "in_batch", "scale": 20}, {"name": "cosine"}
    compared = compare_runs(
        [
            finished("a", model={**model, "head": None}, data={"train": [rows]}, objective=two_losses[0]),
            finished(
                "b",
                model={**model, "head": head, "prompts": {"query": "q: "}},
                data={"train": [{**rows, "where": where}]},
                objective=two_losses[1],
            ),
        ]
    )
    assert compared.config == {
        "model.prompts": {"a": {}, "b": {"query": "q: "}},
        "model.head": {"a": None, "b": head},
        "data.train.0.where": {"a": {}, "b": where},
        "objective": {"a": two_losses[0], "b": two_losses[1]},
    }


def test_mappings_of_the_same_keys_are_compared_by_them_and_lists_whole() -> None:
    one = finished("a", model={"head": {"dim": 8, "layers": 2}}, objective={"dims": [64, 32], "w": [1]})
    two = finished("b", model={"head": {"dim": 8, "layers": 3}}, objective={"dims": [64], "w": [1.0]})
    assert compare_runs([one, two]).config == {
        "model.head.layers": {"a": 2, "b": 3},
        "objective.dims": {"a": [64, 32], "b": [64]},
    }


def test_a_set_that_only_one_run_has_is_told_whole() -> None:
    rows = {"source": "x.csv", "limit": 1}
    compared = compare_runs(
        [finished("a", data={"train": [rows]}), finished("b", data={"train": [{**rows, "limit": 2}, rows]})]
    )
    assert compared.config == {"data.train.0.limit": {"a": 1, "b": 2}, "data.train.1": {"b": rows}}


def test_the_keys_of_train_are_told_one_by_one_also_where_a_run_sets_none() -> None:
    compared = compare_runs([finished("a"), finished("b", train={"max_steps": 3, "optim_args": {"x": 1}})])
    assert compared.config == {"train.max_steps": {"b": 3}, "train.optim_args": {"b": {"x": 1}}}


def test_an_item_of_a_list_is_told_by_its_number_and_true_is_not_one() -> None:
    compared = compare_runs(
        [
            finished("a", data={"train": [{"source": "x.csv", "limit": 1}]}),
            finished("b", data={"train": [{"source": "y.csv", "limit": True}]}),
        ]
    )
    assert compared.config == {
        "data.train.0.source": {"a": "x.csv", "b": "y.csv"},
        "data.train.0.limit": {"a": 1, "b": True},
    }


def test_the_folder_is_told_only_where_nothing_else_differs() -> None:
    same = compare_runs([finished("a", seed=1), finished("b", seed=1)])
    assert same.config == {"output_dir": {"a": "runs/a", "b": "runs/b"}}
    assert list(compare_runs([finished("a", seed=1), finished("b", seed=2)]).config) == ["seed"]


def test_results_stand_beside_each_other_with_the_difference_from_the_first_run() -> None:
    one, two, three = (eval_set(spearman=change(0.8, after)) for after in (0.82, 0.85, 0.79))
    compared = compare_runs([finished("a", one), finished("b", two), finished("c", three)])
    (stsb,) = compared.sets
    assert list(stsb.metrics) == ["spearman"]
    assert {run: found.difference.value for run, found in stsb.metrics["spearman"].items()} == pytest.approx(
        {"a": 0.02, "b": 0.05, "c": -0.01}
    )
    assert stsb.from_first["spearman"] == pytest.approx({"b": 0.03, "c": -0.03})


def test_the_metric_that_selected_a_model_is_told_beside_the_main_one() -> None:
    metrics = {"spearman": change(0.8, 0.82), "pearson": change(0.7, 0.72), "other": change(0.1, 0.2)}
    compared = compare_runs(
        [
            finished("a", eval_set(more=metrics)),
            finished("b", eval_set(more=metrics), selected_by="stsb_pearson"),
        ]
    )
    assert list(compared.sets[0].metrics) == ["spearman", "pearson"]


def test_sets_of_one_name_with_other_examples_are_not_compared_and_that_is_said() -> None:
    one = eval_set(spearman=change(0.8, 0.82))
    other = eval_set(spearman=change(0.5, 0.6), fingerprint="f2")
    compared = compare_runs([finished("a", one), finished("b", other), finished("c", one)])
    assert [list(found.metrics["spearman"]) for found in compared.sets] == [["a", "c"], ["b"]]
    assert compared.notes == ("stsb is not of the same examples in a, c and b: these are not compared",)
    alone = compare_runs([finished("a", one), finished("b", other)])
    assert alone.eval_command is None and not any(found.from_first["spearman"] for found in alone.sets)


def test_the_command_for_the_paired_interval_is_one_of_a_shell() -> None:
    one = eval_set(spearman=change(0.8, 0.82))
    command = compare_runs([finished("a b", one), finished("c", one)]).eval_command
    assert command is not None and shlex.split(command) == [
        *("sbert-train", "eval", "runs/a b/model", "runs/c/model", "--config", "runs/a b/config.yaml")
    ]


def test_runs_with_other_prompts_are_given_no_command_that_would_be_refused() -> None:
    one = eval_set(spearman=change(0.8, 0.82))
    other = finished("b", one, model={"base": "org/base", "prompts": {"anchor": "query: "}})
    compared = compare_runs([finished("a", one), other])
    assert compared.eval_command is None
    assert "other prompts" in compared.notes[0] and "eval MODEL MODEL --data" in compared.notes[0]


def test_a_run_without_eval_sets_is_named() -> None:
    compared = compare_runs([finished("a", eval_set(spearman=change(0.8, 0.82))), finished("b")])
    assert compared.notes == ("without eval sets: b",)


def test_the_json_has_the_keys_that_are_documented() -> None:
    one, two = (eval_set(spearman=change(0.8, after)) for after in (0.82, 0.85))
    figures = json.loads(
        json.dumps(compare_runs([finished("a", one, seed=1), finished("b", two, seed=2)]).to_json())
    )
    assert list(figures) == ["runs", "config", "facts", "evaluation", "notes", "eval_command"]
    assert figures["runs"][0] == {"name": "a", "folder": "runs/a", "selected_by": None}
    assert figures["config"] == {"seed": {"a": 1, "b": 2}}
    (found,) = figures["evaluation"]
    assert list(found) == ["task", "kind", "n", "unit", "fingerprint", "metrics"]
    first, second = found["metrics"]["spearman"].values()
    assert first["from_first"] is None and second["from_first"] == pytest.approx(0.03)
    assert set(second["difference"]) == {"value", "low", "high"}
