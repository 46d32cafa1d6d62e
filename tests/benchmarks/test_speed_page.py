"""The page says what the records say: medians, spreads, shares, and what was not run."""

from pathlib import Path
from xml.etree import ElementTree

from benchmarks.speed.chart import Line, Panel, svg, ticks
from benchmarks.speed.page import merged, page, write_page
from benchmarks.speed.profiling import KINDS, OTHER, OUTSIDE
from benchmarks.speed.record import Record, Results
from benchmarks.speed.runs import OURS, PEER, PEER_FLASH, SEED, Cell
from tests.benchmarks.speed_records import cell, machine_of, pair_of, plan_of, record

MB = 1_000_000
NO_BF16 = "not measured: no native bf16"
TOO_LONG = "not run: a step would take about 900 s, the budget is 120 s"
LONG = cell(model="bert-base", batch=256)
DEFAULTS = cell("defaults", batch=0)
ENCODE = cell("encode", data="mixed", batch=0)
LOSSES = cell("losses", batch=32, dropout=False, rows=640)
SETTINGS = {"batch": 8, "epochs": 3, "checkpoints": "steps"}


def cached(batch: int, micro_tokens: int | None) -> Cell:
    return cell("gradient_cache", sides=(OURS,), data="mixed", batch=batch, micro_tokens=micro_tokens)


def grown(rows: int, side: str) -> Cell:
    return cell("curves", sides=(side,), data="mixed", rows=rows)


def memory(peak: int, base: int = 100) -> dict[str, int]:
    return {"peak_bytes": peak * MB, "base_bytes": base * MB}


def results() -> Results:
    machine = machine_of()
    cells = [cell(), DEFAULTS, ENCODE, LOSSES, cached(64, None), cached(256, None), cached(4096, 4096)]
    plans = [
        *map(plan_of, (machine.run.cell, *cells, grown(1024, OURS), grown(2048, OURS), grown(1024, PEER))),
        plan_of(cell(precision="bf16"), reason=NO_BF16),
        plan_of(LONG, reason=TOO_LONG),
        plan_of(cell(data="trecqa")),
    ]
    records: list[Record] = [
        machine,
        *(
            record(
                cell(), PEER, pair, seconds, **memory(500), step_seconds=(5.0, 2.0, 2.0), setup_seconds=4.0
            )
            for pair, seconds in enumerate((30.0, 20.0, 40.0))
        ),
        *(
            record(cell(), OURS, pair, 10.0, **memory(300), step_seconds=(9.0, 1.0, 1.0), setup_seconds=6.0)
            for pair in range(3)
        ),
        record(DEFAULTS, PEER, 0, 60.0, rows_seen=1920, details=SETTINGS),
        record(DEFAULTS, OURS, 0, 4.0, details=SETTINGS | {"batch": 64, "epochs": 1}),
        record(ENCODE, PEER, 0, 3.0),
        record(ENCODE, OURS, 0, 2.0, difference=2e-7),
        record(LOSSES, PEER, 0, 1.0, losses=(0.5, 0.25)),
        record(LOSSES, OURS, 0, 1.0, losses=(0.5, 0.25003)),
        # 6,400 tokens in 10 steps are 640 a step; of 256 rows 6,400 in 2.5: nearer to 4,096.
        record(cached(64, None), OURS, 0, 20.0, **memory(400)),
        record(cached(256, None), OURS, 0, 8.0, rows=512, tokens=6400, **memory(900)),
        record(cached(4096, 4096), OURS, 0, 80.0, rows=4096, **memory(500)),
        record(grown(1024, OURS), OURS, 0, 10.0, rows=1024, setup_seconds=5.0),
        record(grown(2048, OURS), OURS, 0, 20.0, rows=2048, setup_seconds=6.0),
        record(grown(1024, PEER), PEER, 0, 40.0, rows=1024, setup_seconds=8.0),
    ]
    return Results(plans=plans, records=records)


def lines() -> list[str]:
    return page(results()).splitlines()


def test_a_cell_of_the_matrix_is_a_line_of_medians() -> None:
    # Ratios 3, 2 and 4. Medians of the rates: 640 / 30 and 640 / 10 pairs a second, ten tokens each.
    # Shares: 6 x 10,616,832 weights x 213.3 (640) tokens a second of 100e9.
    assert (
        "| minilm | snli | 64 | fp32 | plain | 10 x 3 | 3.00 (2.00 to 4.00) | 2.00 | 1.88 | 21.3 / 64.0 | 213 / 640 "
        "| 14 % / 41 % | 500 MB / 300 MB |"
    ) in lines()
    assert "In fp32, against the peer, the medians of 1 cells lie between 3.00 and 3.00." in lines()
    assert "| minilm | sentence-transformers | 3 | 4.00 (4.00 to 4.00) |" in lines(), "the start"


def test_what_was_not_run_is_listed_with_its_reason() -> None:
    found = lines()
    assert f"- {NO_BF16}: minilm snli batch 64 bf16." in found
    assert f"- {TOO_LONG}: bert-base snli batch 256 fp32." in found
    assert "- planned, but without a record: minilm trecqa batch 64 fp32." in found
    assert not any(line.startswith("| bert-base") for line in found)


def test_flash_attention_has_a_line_of_its_own() -> None:
    of = cell(sides=(PEER, PEER_FLASH, OURS), device="cuda", model="bert-base", batch=512, precision="bf16")
    records = [
        record(of, side, 0, seconds, step_seconds=(1.0, 1.0))
        for side, seconds in ((PEER, 50.0), (PEER_FLASH, 20.0), (OURS, 10.0))
    ]
    text = page(Results(plans=[plan_of(of)], records=records))
    assert "| bert-base | snli | 512 | bf16 | plain | 1 x 1 | 5.00 (one)" in text
    assert "| bert-base | snli | 512 | bf16 | flash attention | 1 x 1 | 2.00 (one)" in text
    assert "## On the GPU" in text and "## On the CPU" not in text
    assert "| BERT-base shape, SNLI, bf16, batch 512, against the plain peer | at least 2.5 | 5.00 |" in text


def test_defaults_are_told_and_compared_by_pairs_a_second() -> None:
    found = lines()
    # 640 / 4 against 1920 / 60 pairs a second; 60 s against 4 s.
    whole = "Of the time of a whole run, epochs as the defaults have them: 15.00 (one)."
    assert f"Ratio of pairs/s over 1 pairs of runs: 5.00 (one). {whole}" in found
    assert "| sentence-transformers | 8 | 3 | steps | 1,920 | 32.0 | 107 | 0 MB |" in found


def test_losses_stand_beside_each_other_and_the_largest_difference_is_judged() -> None:
    found = lines()
    assert "| 2 | 0.250000 | 0.250030 | 3.0e-05 |" in found
    assert "in_batch_negatives on snli: at most 3.0e-05 apart, which is within 0.0001." in found
    apart = [record(LOSSES, PEER, 0, 1.0, losses=(0.5,)), record(LOSSES, OURS, 0, 1.0, losses=(0.501,))]
    assert "apart, which is NOT within 0.0001." in page(Results(plans=[plan_of(LOSSES)], records=apart))


def test_embeddings_are_compared_beside_their_speed() -> None:
    # 2 x 10,616,832 x 3,200 (2,133) tokens a second of 100e9.
    assert (
        "| fp32 | 640 x 1 | 1.50 (one) | 213 / 320 | 2,133 / 3,200 | 45 % / 68 % | 0 MB / 0 MB | 2.0e-07 |"
        in lines()
    )


def test_the_cache_is_compared_with_the_uncached_batch_nearest_to_its_micro_batch() -> None:
    # 512 pairs in 8 s without a cache, 51.2 a second with it: 64 / 51.2 = 1.25. Peak 500 over 400, growth 400 over 300.
    assert (
        "| 4,096 | 4,096 | sbert-train | 1 x 1 | 51.2 | 80.0 | 1.25 (one) | 500 MB | 1.25 | 400 MB | 1.33 |"
        in lines()
    )
    assert "| 64 | - | sbert-train | 10 x 1 | 32.0 | 2.00 | - | 400 MB | 1.00 | 300 MB | 1.00 |" in lines()


def test_the_cache_is_compared_run_by_run() -> None:
    runs = {cached(256, None): (8.0, 16.0, 8.0), cached(4096, 2048): (80.0, 160.0)}
    records = [
        record(of, OURS, pair, seconds, rows=512 if of.batch == 256 else 4096)
        for of, every in runs.items()
        for pair, seconds in enumerate(every)
    ]
    text = page(Results(plans=[plan_of(of) for of in runs], records=records))
    # 64 / 51.2, then 32 / 25.6: where the machine was slow it was slow for both.
    assert "| sbert-train | 1 x 2 | 38.4 | 120 | 1.25 (1.25 to 1.25) |" in text


def test_a_profile_is_told_by_the_pair_with_the_limit_that_it_sets() -> None:
    of = cell("profile", rows=320)
    theirs, mine = dict.fromkeys([*KINDS, OTHER, OUTSIDE], 0.0), dict.fromkeys([*KINDS, OTHER, OUTSIDE], 0.0)
    theirs |= {"weights' products": 15.36, OUTSIDE: 5.12}
    mine |= {"weights' products": 5.12, "dropout": 1.28}
    records = [
        record(of, PEER, 0, 1.0, rows=320, details=theirs),
        record(of, OURS, 0, 1.0, rows=320, details=mine),
    ]
    text = page(Results(plans=[plan_of(of)], records=records))
    # 256 pairs are in the profile. 80 ms a pair of the peer over 20 ms that our products take.
    assert (
        "| snli | sentence-transformers | 60.00 (75 %) | 0.00 (0 %) |" in text
        and "| 20.00 (25 %) | 80.0 |  |" in text
    )
    assert (
        "| snli | sbert-train | 20.00 (80 %) | 0.00 (0 %) | 5.00 (20 %) |" in text
        and "| 25.0 | 4.00 |" in text
    )


def test_the_bars_stand_beside_what_was_measured() -> None:
    found = lines()
    assert "| training against the peer, fp32 | at least 2.5 | 3.00 |" in found
    assert "| training against the peer, bf16 | at least 3.0 | - |" in found
    assert "| our defaults against its defaults | at least 6 | 5.00 |" in found
    assert "| encode of a mixed corpus, fp32 | at least 1.3 | 1.50 |" in found
    of_the_cache = [line for line in found if line.startswith("| gradient cache at batch 4,096")]
    assert [line.split(" | ")[1:] for line in of_the_cache] == [
        ["under 1.5", "1.25 |"],
        ["under 1.4", "1.25 (one) |"],
    ]


def test_a_machine_without_bf16_is_said_to_be_one() -> None:
    in_bf16 = cell("hardware", sides=("machine",), model="", data="", batch=0, precision="bf16")
    said = "This machine has no native bf16"
    assert said in page(Results(plans=[plan_of(in_bf16, reason=NO_BF16)]))
    assert said not in page(Results(plans=[plan_of(in_bf16)]))


def test_curves_are_of_the_whole_time_and_drawn_beside_the_page(tmp_path: Path) -> None:
    write_page(results(), tmp_path / "RESULTS.md")
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert text == page(results())
    assert "| 1,024 | sbert-train | fp32 | 1 | 15.00 (one) | 102 |" in text
    assert "](curves-cpu.svg)" in text
    tree = ElementTree.parse(tmp_path / "curves-cpu.svg")
    words = {element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Time per pair", "Peak memory", "ours, cache", "2,048", "4,096"} <= words


def test_a_page_without_curves_has_no_plot(tmp_path: Path) -> None:
    write_page(Results(plans=[plan_of(cell())]), tmp_path / "RESULTS.md")
    assert [file.name for file in tmp_path.iterdir()] == ["RESULTS.md"]
    assert ".svg" not in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")


def test_figures_are_told_with_their_device_commit_versions_and_days() -> None:
    found = next(line for line in lines() if line.startswith("- a processor"))
    assert found.startswith(
        "- a processor; commit abc1234; torch 2.0; 2026-01-01: hardware, training, defaults"
    )
    assert found.endswith(f"({len(results().records)} runs)") and f"{SEED}. " in page(results())


def test_tables_hold_as_many_cells_as_their_head() -> None:
    tables = [block for block in page(results()).split("\n\n") if block.startswith("|")]
    assert len(tables) == 9
    for table in tables:
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len(rows) > 2 and len({line.count("|") for line in rows}) == 1, table


def test_new_results_replace_those_of_the_same_table_and_device() -> None:
    old = Results(
        plans=[plan_of(cell()), plan_of(ENCODE), plan_of(cell(device="cuda"))],
        records=[*pair_of(cell(), 0, 9.0, 9.0), *pair_of(ENCODE, 0, 9.0, 9.0)],
    )
    new = Results(plans=[plan_of(cell())], records=pair_of(cell(), 0, 1.0, 1.0))
    found = merged(old, new)
    assert [plan.cell for plan in found.plans] == [ENCODE, cell(device="cuda"), cell()]
    assert [(one.run.cell.table, one.measured.seconds) for one in found.records] == [
        *[("encode", 9.0)] * 2,
        *[("training", 1.0)] * 2,
    ]


def test_old_results_of_another_machine_go() -> None:
    old = Results(
        plans=[plan_of(ENCODE), plan_of(DEFAULTS), plan_of(cell(device="cuda"))],
        records=[record(ENCODE, OURS, 0, 9.0, device="another"), record(DEFAULTS, OURS, 0, 9.0)],
    )
    found = merged(old, Results(plans=[plan_of(cell())], records=[record(cell(), OURS, 0, 1.0)]))
    assert [plan.cell for plan in found.plans] == [DEFAULTS, cell(device="cuda"), cell()]
    assert [one.run.cell for one in found.records] == [DEFAULTS, cell()]


def test_a_curve_rises_where_its_numbers_do_on_logarithmic_axes() -> None:
    panel = Panel("a & b", "x", "y", (Line("one", ((1, 1), (10, 10), (100, 100))),))
    tree = ElementTree.fromstring(svg([panel, Panel("empty", "x", "y", ())]))
    dots = [
        (float(dot.attrib["cx"]), float(dot.attrib["cy"]))
        for dot in tree.iter("{http://www.w3.org/2000/svg}circle")
    ]
    (x0, y0), (x1, y1), (x2, y2) = dots
    assert x0 < x1 < x2 and y0 > y1 > y2, "down the page numbers fall"
    assert abs((x1 - x0) - (x2 - x1)) < 0.2 and abs((y1 - y0) - (y2 - y1)) < 0.2, "equal factors, equal steps"
    assert "a &amp; b" in svg([panel]) and "empty" not in svg([panel, Panel("empty", "x", "y", ())])


def test_ticks_lie_within_the_axis() -> None:
    assert all(3 <= tick <= 60 for tick in ticks(3, 60)) and ticks(0.001, 90) == [0.001, 0.01, 0.1, 1.0, 10.0]
