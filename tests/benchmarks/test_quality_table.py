"""The page says what the records say: means, spreads, differences, and what is missing."""

from pathlib import Path

from benchmarks.quality.experiments import EXPERIMENTS
from benchmarks.quality.record import append_record
from benchmarks.quality.table import page, settings, spread, write_table
from tests.benchmarks.records import record

RECORDS = [
    record("trecqa", "ours", 1, trecqa_test_map=0.76),
    record("trecqa", "peer", 42, trecqa_test_map=0.70),
    record("trecqa", "peer", 1, trecqa_test_map=0.74),
    record("trecqa", "base", None, trecqa_test_map=0.65),
    record("snli_pairs", "peer", 42, stsb_dev_spearman=0.86),
]


def test_sides_stand_side_by_side_in_the_order_of_the_experiments() -> None:
    lines = page(RECORDS).splitlines()
    pairs = "| snli_pairs | stsb_dev_spearman | - | 0.8600 (1 seed) | - | - |"
    # Seed 42 has no counterpart, so the difference is that of seed 1: 0.76 - 0.74.
    trecqa = (
        "| trecqa | trecqa_test_map | 0.6500 | 0.7200 (0.7000 to 0.7400, sd 0.0283, 2 seeds) | 0.7600 (1 seed) "
        "| +0.0200 |"
    )
    assert lines.index(pairs) + 1 == lines.index(trecqa)


def test_every_run_is_listed_by_seed() -> None:
    lines = page(RECORDS).splitlines()
    assert "| experiment | figure | side | seed 42 | seed 1 |" in lines
    assert "| trecqa | trecqa_test_map | sentence-transformers | 0.7000 | 0.7400 |" in lines
    assert "| trecqa | trecqa_test_map | sbert-train | - | 0.7600 |" in lines


def test_costs_are_means_over_seeds() -> None:
    assert "| trecqa | sentence-transformers | 10 | 640 | 20.0 | 32.0 |" in page(RECORDS).splitlines()


def test_the_last_record_of_a_run_counts() -> None:
    lines = page([*RECORDS, record("snli_pairs", "peer", 42, stsb_dev_spearman=0.87)]).splitlines()
    assert "| snli_pairs | stsb_dev_spearman | - | 0.8700 (1 seed) | - | - |" in lines
    assert not any("0.8600" in line for line in lines)


def test_figures_are_told_with_the_hardware_commit_and_versions_that_they_come_from() -> None:
    later = record("trecqa", "ours", 42, commit="def5678", trecqa_test_map=0.75)
    text = page([*RECORDS, later])
    assert (
        "- a processor, fp32; commit abc1234; torch 2.0: peer of snli_pairs, trecqa; base of trecqa" in text
    )
    assert "- a processor, fp32; commit def5678; torch 2.0: ours of trecqa\n" in text


def test_every_record_has_its_command() -> None:
    text = page(RECORDS)
    assert all(one.command in text.splitlines() for one in RECORDS)


def test_the_settings_are_those_of_the_experiments() -> None:
    text = settings(EXPERIMENTS)
    cells = EXPERIMENTS["stsb_cosent"].about
    assert f"| stsb_cosent | {cells} | 4 | 32 | 5e-5 |" in text
    assert "`weight_decay: 0.0`" in text and "`optim: adamw_torch_fused`" in text
    assert "`max_grad_norm: 1.0`" in text and "(`max_grad_norm`)" in text, "but for what an experiment says"
    assert "num_train_epochs" not in text, "what differs is in the table"


def test_the_spread_is_the_sample_standard_deviation() -> None:
    # Deviations -1, 0, 1 of a hundredth: their squares over n - 1 are 1.
    assert spread([0.81, 0.80, 0.82]) == "0.8100 (0.8000 to 0.8200, sd 0.0100, 3 seeds)"
    assert spread([]) == "-"


def test_tables_hold_as_many_cells_as_their_head() -> None:
    tables = [block for block in page(RECORDS).split("\n\n") if block.startswith("|")]
    assert len(tables) == 4
    for table in tables:
        assert len({line.count("|") for line in table.strip().splitlines()}) == 1


def test_a_page_is_written_from_a_file_of_results(tmp_path: Path) -> None:
    for one in RECORDS:
        append_record(tmp_path / "results.jsonl", one)
    write_table(tmp_path / "results.jsonl", tmp_path / "RESULTS.md")
    assert (tmp_path / "RESULTS.md").read_text(encoding="utf-8") == page(RECORDS)
