"""What figures depend on besides the code under test: the machine, the checkout, the versions of packages."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import torch

from sbert_train.model.precision import native_precision

VERSIONS = ("sentence-transformers", "torch", "transformers", "accelerate", "datasets", "numpy")
ROOT = Path(__file__).parents[1]


def versions() -> dict[str, str]:
    """Distribution -> version, of what decides the figures."""
    return {name: version(name) for name in VERSIONS}


def hardware() -> str:
    """Processor, threads and precision, such as "AMD EPYC, 2 cores, 2 threads, fp32 (without native bf16)"."""
    return f"{cores()}, fp32 ({native_bf16(use_cpu=True)})"


def device() -> str:
    """What a run that is not told otherwise computes on: a GPU by its name, else the processor."""
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()} ({native_bf16(use_cpu=False)}), host {cores()}"
    return f"{cores()} ({native_bf16(use_cpu=True)})"


def cores() -> str:
    """Processor and threads, such as "AMD EPYC, 2 cores, 2 threads"."""
    return f"{processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"


def native_bf16(use_cpu: bool) -> str:
    """Whether the hardware multiplies matrices in bfloat16, in words."""
    return f"{'with' if native_precision(use_cpu) == 'bf16' else 'without'} native bf16"


def processor() -> str:
    """Name of the processor, as Linux tells it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return "unknown processor"


def commit() -> str:
    """Short hash of the checkout, with `-dirty` where tracked files were changed; empty outside a checkout."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip()
