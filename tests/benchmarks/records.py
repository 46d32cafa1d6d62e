"""Records of runs that never were."""

from benchmarks.quality.record import Record


def record(
    experiment: str, side: str, seed: int | None, *, commit: str = "abc1234", **metrics: float
) -> Record:
    """A run with these figures: 10 steps, 640 rows, 20 seconds."""
    return Record(
        experiment=experiment,
        side=side,
        seed=seed,
        metrics=metrics,
        steps=10,
        rows_seen=640,
        train_seconds=20.0,
        rows_per_second=32.0,
        command=f"python -m benchmarks.quality run --experiment {experiment} --side {side} --seed {seed}",
        commit=commit,
        versions={"torch": "2.0"},
        hardware="a processor, fp32",
    )
