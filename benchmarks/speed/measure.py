"""One run in this process: what is asked for -> what was measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks import machine
from benchmarks.data import Row
from benchmarks.speed.budget import padded
from benchmarks.speed.clock import Clock
from benchmarks.speed.models import count_tokens, model_folder
from benchmarks.speed.rows import POOLS, corpus, in_order, texts_of
from benchmarks.speed.runs import OURS, Measured, Run
from benchmarks.speed.started import seconds_since_start


def measure(run: Run, data: Path, cache: Path, folder: Path) -> Measured:
    """Do a run.

    Args:
        data: the folder of data sets.
        cache: folder of the models that are written for the benchmarks.
        folder: of this run alone.
    """
    if run.cell.table == "hardware":
        measured = _hardware(run)
    else:
        model = model_folder(run.cell.model, run.cell.dropout, cache)
        if run.cell.table == "encode":
            measured = _encode(run, corpus(data)[: run.rows], model, folder)
        else:
            measured = _train(run, rows_of(run, data), model, folder)
    return replace(measured, device=machine.device(), threads=torch.get_num_threads())


def rows_of(run: Run, data: Path) -> list[Row]:
    """The training rows of a run, in order; without a batch, some of the pool, each once."""
    pool = POOLS[run.cell.data](data)
    if run.cell.batch:
        return in_order(pool, run.cell.batch, run.rows, run.seed)
    return in_order(pool, 1, run.rows, run.seed)


def _train(run: Run, rows: Sequence[Row], model: Path, folder: Path) -> Measured:
    # Each side is imported alone, so that none changes what the other runs with.
    if run.side == OURS:
        from benchmarks.speed import ours

        clock = ours.train(run, rows, model, folder)
        seen = round(len(rows) * clock.settings["epochs"])
    else:
        from benchmarks.speed import peer

        clock, seen = peer.train(run, rows, model, folder)
    return _measured(run, clock, rows, seen, model)


def _measured(run: Run, clock: Clock, rows: Sequence[Row], seen: int, model: Path) -> Measured:
    """Raises RuntimeError where a side did not do all that was asked for."""
    epochs, rest = divmod(seen, len(rows))
    steps = run.steps or len(clock.step_seconds)
    if clock.seconds is None or rest or len(clock.step_seconds) != steps:
        raise RuntimeError(
            f"expected {steps} steps over {len(rows)} rows and a reported time, found {len(clock.step_seconds)} steps "
            f"over {seen} rows and {clock.seconds}; look into {run}"
        )
    real, with_padding, distinct = tokens_of(rows, run.cell.batch, model)
    return Measured(
        seconds=clock.seconds,
        rows_seen=seen,
        tokens=epochs * real,
        padded_tokens=epochs * with_padding,
        distinct_tokens=epochs * distinct,
        step_seconds=tuple(round(seconds, 6) for seconds in clock.step_seconds),
        losses=tuple(clock.losses) if run.cell.table == "losses" else (),
        setup_seconds=round(clock.setup_seconds, 2),
        peak_bytes=clock.peak_bytes,
        base_bytes=clock.base_bytes,
        details=clock.profile.seconds if clock.profile else clock.settings,
    )


def tokens_of(rows: Sequence[Row], batch: int, model: Path) -> tuple[int, int, int]:
    """Tokens of all texts: real ones, with padding column by column, and those of a batch's distinct texts.

    Without a batch (0), the last two are 0: they are not the same on both sides.
    """
    texts = list(dict.fromkeys(texts_of(rows)))
    tokens = dict(zip(texts, count_tokens(model, texts), strict=True))
    real = sum(tokens[text] for text in texts_of(rows))
    if not batch:
        return real, 0, 0
    batches = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    names = [name for name, value in rows[0].items() if isinstance(value, str)]
    columns = [[[tokens[str(row[name])] for row in own] for name in names] for own in batches]
    distinct = sum(tokens[text] for own in batches for text in dict.fromkeys(texts_of(own)))
    return real, sum(padded(of_batch) for of_batch in columns), distinct


def _encode(run: Run, texts: Sequence[str], model: Path, folder: Path) -> Measured:
    from benchmarks.speed.encoding import encode

    seconds, meter, peak = encode(run, texts, model, folder)
    return Measured(
        seconds=seconds,
        rows_seen=len(texts),
        tokens=sum(count_tokens(model, list(texts))),
        peak_bytes=peak,
        base_bytes=meter.base,
    )


def _hardware(run: Run) -> Measured:
    from benchmarks.speed.matmul import peaks

    found = peaks(run.cell.precision)
    return Measured(seconds=seconds_since_start(), rows_seen=0, tokens=0, details=found)
