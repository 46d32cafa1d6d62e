"""Ratios, rates and shares equal what is worked out by hand on records that never were."""

import pytest

from benchmarks.speed import figures
from benchmarks.speed.figures import Spread
from benchmarks.speed.runs import OURS, PEER
from tests.benchmarks.speed_records import cell, record


def test_the_ratio_of_a_pair_is_their_time_over_ours() -> None:
    theirs = {i: record(cell(), PEER, i, seconds) for i, seconds in enumerate((30.0, 20.0, 24.0))}
    ours = {i: record(cell(), OURS, i, seconds) for i, seconds in enumerate((10.0, 10.0, 6.0))}
    found = figures.ratios(ours, theirs)
    assert found == pytest.approx([3.0, 2.0, 4.0])
    assert str(Spread.of(found)) == "3.00 (2.00 to 4.00)"


def test_the_median_is_of_ratios_not_of_times() -> None:
    # Times by themselves: medians 20 and 10. Pair by pair: 10, 1 and 4.
    theirs = {i: record(cell(), PEER, i, seconds) for i, seconds in enumerate((100.0, 10.0, 20.0))}
    ours = {i: record(cell(), OURS, i, seconds) for i, seconds in enumerate((10.0, 10.0, 5.0))}
    assert Spread.of(figures.ratios(ours, theirs)).median == pytest.approx(4.0)


def test_a_run_without_its_partner_counts_for_nothing() -> None:
    theirs = {0: record(cell(), PEER, 0, 30.0), 2: record(cell(), PEER, 2, 99.0)}
    ours = {0: record(cell(), OURS, 0, 10.0), 1: record(cell(), OURS, 1, 1.0)}
    assert figures.ratios(ours, theirs) == pytest.approx([3.0])
    assert figures.ratios(ours, {}) == []


def test_sides_that_train_on_different_numbers_of_rows_are_compared_by_rows_a_second() -> None:
    # The peer's defaults are three epochs, ours one: 1920 rows in 60 s and 640 in 10 s.
    theirs = {0: record(cell(), PEER, 0, 60.0, rows_seen=1920)}
    ours = {0: record(cell(), OURS, 0, 10.0)}
    assert figures.ratios(ours, theirs) == pytest.approx([2.0])


def test_the_first_step_is_left_out_of_the_median_step_where_there_are_others() -> None:
    assert figures.step_rate(record(cell(), OURS, 0, 1.0, step_seconds=(9.0, 1.0, 2.0, 4.0))) == 32.0
    assert figures.step_rate(record(cell(), OURS, 0, 1.0, step_seconds=(9.0,))) == pytest.approx(64 / 9)


def test_the_share_of_the_peak_is_six_operations_a_weight_and_token_in_training_and_two_in_encoding() -> None:
    # 6,400 tokens in 4 s are 1,600 a second; times 6 times a million weights: 9.6e9 of 100e9.
    trained = record(cell(), OURS, 0, 4.0)
    assert figures.share_of_peak(trained, 1_000_000, 100e9) == pytest.approx(0.096)
    encoded = record(cell("encode", batch=0), OURS, 0, 4.0)
    assert figures.share_of_peak(encoded, 1_000_000, 100e9) == pytest.approx(0.032)


def test_growth_is_what_training_holds_beyond_model_and_data() -> None:
    one = record(cell(), OURS, 0, 1.0, peak_bytes=900, base_bytes=300)
    assert (figures.peak_bytes(one), figures.growth_bytes(one)) == (900, 600)


def test_a_single_run_has_no_spread_to_tell() -> None:
    assert str(Spread.of([2.5])) == "2.50 (one)"
