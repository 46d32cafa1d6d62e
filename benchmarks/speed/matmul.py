"""The most that this machine multiplies: matrices of several shapes, each the best of many times.

Shapes: (M, K) times (K, N), 2 M K N operations.
"""

import time
from collections.abc import Mapping, Sequence

import torch

from benchmarks.speed.runs import Precision

Shape = tuple[int, int, int]

SHAPES: Sequence[Shape] = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (2048, 384, 1536),  # a batch of all-MiniLM-L6-v2: into the feed-forward layer, out of it, and attention's
    (2048, 1536, 384),
    (2048, 384, 384),
    (8192, 768, 3072),  # the same of BERT-base
    (8192, 3072, 768),
    (8192, 768, 768),
)
ON_A_GPU: Sequence[Shape] = ((8192, 8192, 8192), (16384, 16384, 16384))
"""Such a machine needs larger ones to be busy."""

DTYPES: Mapping[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
REPEATS = 10
SECONDS = 1.0


def peaks(precision: Precision, shapes: Sequence[Shape] | None = None) -> dict[str, float]:
    """Shape, such as 2048x384x1536 -> operations a second."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    wanted = shapes or (*SHAPES, *(ON_A_GPU if device == "cuda" else ()))
    return {
        "x".join(map(str, shape)): operations(shape) / best_seconds(shape, precision, device)
        for shape in wanted
    }


def operations(shape: Shape) -> int:
    """Multiplications and additions.

    >>> operations((2, 3, 4))
    48
    """
    m, k, n = shape
    return 2 * m * k * n


def best_seconds(shape: Shape, precision: Precision, device: str) -> float:
    """The shortest of REPEATS products, or of as many as a second holds if those are more."""
    m, k, n = shape
    one, other = (
        torch.randn(size, dtype=torch.float32).to(device, DTYPES[precision]) for size in ((m, k), (k, n))
    )
    found: list[float] = []
    out = torch.matmul(one, other)  # the first call sets things up
    started = time.perf_counter()
    while len(found) < REPEATS or time.perf_counter() - started < SECONDS:
        _wait(device)
        start = time.perf_counter()
        torch.matmul(one, other, out=out)
        _wait(device)
        found.append(time.perf_counter() - start)
    return min(found)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
