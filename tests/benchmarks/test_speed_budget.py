"""A budget becomes steps and pairs: estimates by hand, and what is too long is told instead of run."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.budget import Allowance, Unit, plan, unit_of
from benchmarks.speed.planning import Machine, peak_of, plan_cell, refusal
from benchmarks.speed.record import Results
from benchmarks.speed.runs import OURS, PEER, PEER_FLASH
from benchmarks.speed.tables import TABLES
from tests.benchmarks.speed_records import PEAK, cell, machine_of

PLAIN = Machine(device="cpu", bf16=False, flash=False)


def unit(theirs: float, ours: float = 0.0, rows: int = 64) -> Unit:
    return Unit(rows, {PEER: theirs, OURS: ours})


def test_the_peer_is_estimated_with_its_padding_and_ours_without() -> None:
    columns = [[4, 10, 6], [3, 3, 9]]
    found = unit_of(cell(), columns, parameters=1000, peak=3e5)
    # Padded 3 x 10 + 3 x 9 = 57 tokens, real 35; 6 x 1000 operations each, at half of 3e5 a second.
    assert found.seconds == {PEER: pytest.approx(57 * 6000 / 1.5e5), OURS: pytest.approx(35 * 6000 / 1.5e5)}
    assert found.rows == 3 and found.slowest == found.seconds[PEER]


@pytest.mark.parametrize(
    ("options", "factor"),
    [({"micro_tokens": 4096}, 8 / 6), ({"table": "encode", "batch": 0}, 2 / 6 * 35 / 57)],
)
def test_a_cache_runs_the_forward_twice_and_encoding_has_no_backward_and_sorts(
    options: dict[str, Any], factor: float
) -> None:
    columns = [[4, 10, 6], [3, 3, 9]]
    usual = unit_of(cell(), columns, parameters=1000, peak=3e5)
    found = unit_of(cell(**options), columns, parameters=1000, peak=3e5)
    assert found.seconds[PEER] == pytest.approx(factor * usual.seconds[PEER])


@pytest.mark.parametrize(
    ("seconds", "steps", "pairs"),
    [
        (0.01, 40, 5),  # 120 s are more than anyone needs
        (2.0, 12, 5),  # 60 steps of both sides: 5 pairs of 12
        (10.0, 4, 3),  # 12 steps: as many pairs as have 4 of them
        (50.0, 2, 1),  # 2.4 steps
        (110.0, 1, 1),  # one step of each side, though both together are over the budget
    ],
)
def test_pairs_come_before_steps_until_there_are_enough_pairs(seconds: float, steps: int, pairs: int) -> None:
    found = plan(cell(), unit(seconds, 0.0 if seconds < 100 else 50.0), 120.0)
    assert (found.rows, found.pairs, found.reason) == (64 * steps, pairs, "")


def test_a_cell_whose_single_step_is_over_the_budget_is_not_run_and_says_how_long_it_would_take() -> None:
    found = plan(cell(), unit(121.0), 120.0)
    assert (found.rows, found.pairs, found.estimate) == (0, 0, 121.0)
    assert found.reason == "not run: a step would take about 121 s, the budget is 120 s"


def test_memory_is_compared_over_two_steps_at_least() -> None:
    found = plan(cell("gradient_cache", sides=(OURS,)), unit(0.0, 100.0), 120.0)
    assert (found.rows, found.pairs) == (128, 1)


def test_a_cell_takes_no_more_rows_than_there_are() -> None:
    assert plan(cell(batch=0), unit(0.01), 120.0, most_rows=200).rows == 192


def test_where_the_rows_are_fixed_the_budget_decides_the_pairs_alone() -> None:
    fixed = cell("curves", sides=(OURS,), rows=1024)
    assert (plan(fixed, unit(50.0, rows=1024), 120.0).rows, plan(fixed, unit(50.0), 120.0).pairs) == (1024, 2)
    refused = plan(fixed, unit(500.0, rows=1024), 120.0)
    assert refused.reason == "not run: a run would take about 500 s, the budget is 120 s"


def test_what_the_machine_cannot_do_natively_is_refused_in_words() -> None:
    assert refusal(cell(precision="bf16"), PLAIN) == "not measured: no native bf16"
    assert refusal(cell(precision="bf16"), Machine("cpu", bf16=True, flash=False)) == ""
    flash = cell(sides=(PEER_FLASH,), device="cuda")
    assert (
        refusal(flash, Machine("cuda", bf16=True, flash=False)) == "not measured: flash_attn is not installed"
    )


def test_the_peak_is_that_of_the_fastest_shape_in_the_precision_on_the_device() -> None:
    results = Results(records=[machine_of()])
    assert peak_of(results, "cpu", "fp32") == PEAK
    assert peak_of(results, "cpu", "bf16") is None and peak_of(results, "cuda", "fp32") is None


def test_a_cell_is_planned_from_its_own_rows_and_the_measured_peak(folder: Path, tiny_model: Path) -> None:
    small = cell(model=str(tiny_model), batch=3)
    results = Results(records=[machine_of()])
    found = plan_cell(
        small, PLAIN, results, data=folder, cache=folder, budget=120.0, allowance=Allowance(pairs=2, steps=7)
    )
    # A tiny model takes next to no time, so that all pairs are planned with as many steps as there may be.
    assert (found.rows, found.pairs) == (3 * 7, 2)
    assert plan_cell(
        cell(model=str(tiny_model), batch=4),
        PLAIN,
        results,
        data=folder,
        cache=folder,
        budget=120.0,
        allowance=Allowance(pairs=2, steps=7),
    ).reason == ("not run: there are only 3 rows")
    with pytest.raises(ValueError, match="measure table hardware first"):
        plan_cell(
            small,
            PLAIN,
            Results(),
            data=folder,
            cache=folder,
            budget=120.0,
            allowance=Allowance(pairs=2, steps=7),
        )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_table_asks_for_cells_of_its_own_name_each_once(device: str) -> None:
    for name, table in TABLES.items():
        cells = table.cells(Machine(device, bf16=True, flash=False), 4096)
        assert cells and {(one.table, one.device) for one in cells} == {(name, device)}
        assert len(set(cells)) == len(cells)


def test_the_matrix_is_whole_and_larger_on_a_gpu() -> None:
    training = TABLES["training"]
    assert len(training.cells(PLAIN, 4096)) == 2 * 3 * 3 * 2, "bf16 is asked for, so that it can be refused"
    on_gpu = training.cells(Machine("cuda", bf16=True, flash=True), 4096)
    assert {one.batch for one in on_gpu if one.model == "bert-base"} == {32, 64, 256, 512}
    assert {one.sides for one in on_gpu if one.model == "bert-base" and one.precision == "bf16"} == {
        (PEER, PEER_FLASH, OURS)
    }
    assert {one.sides for one in on_gpu if one.model == "minilm"} == {(PEER, OURS)}
    without = training.cells(Machine("cuda", bf16=True, flash=False), 4096)
    assert (PEER_FLASH,) in {one.sides for one in without}, "it is listed as not measured"
