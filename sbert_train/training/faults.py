"""What a machine can lack while a run trains, and what to say then: memory, disk, finite numbers."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import nn

from sbert_train.data.batch import TextBatch
from sbert_train.errors import TrainingError
from sbert_train.training.checkpoints import list_checkpoints, size_of

_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "Cannot allocate memory")
_NO_WRITE = (
    "PytorchStreamWriter failed",
    "enforce fail at inline_container",
    "No space left",
    "I/O error",
    "iostream error",
)
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ROOM_TO_SPARE = 1.05


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch's or Python's says that there was no memory left."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def out_of_memory(batch: TextBatch, step: int, gradient_cache: int | None) -> TrainingError:
    """What to change when the memory did not suffice for a batch, and to what.

    Args:
        batch: the one that was too large.
        step: the optimizer step that it belongs to, from 1.
        gradient_cache: the tokens of a micro-batch as they were; None where there were none.
    """
    tokens, longest = sum(batch.lengths), max(batch.lengths, default=0)
    if gradient_cache is None:
        cached = max(2 ** (max(1, tokens // 4).bit_length() - 1), 2 ** (longest - 1).bit_length())
    else:
        cached = gradient_cache // 2
    fewer = max(2, batch.rows // 4 * 2)
    tries = ["a smaller model.max_length"]
    if fewer < batch.rows:
        tries.insert(0, f"train.per_device_train_batch_size={fewer}")
    if longest <= cached < tokens:  # a micro-batch holds one text at least
        tries.insert(0, f"engine.gradient_cache={cached}, of the same gradient")
    return TrainingError(
        f"out of memory in step {step}, with {batch.rows} rows of {tokens:,} tokens (the longest text has {longest}): "
        f"try {', or '.join(tries)}"
    )


def evaluation_out_of_memory(batch_size: int) -> TrainingError:
    """The same for an evaluation."""
    return TrainingError(
        f"out of memory while texts were encoded for an evaluation: try train.per_device_eval_batch_size="
        f"{max(1, batch_size // 2)}, half of what it was"
    )


def require_finite(model: nn.Module, step: int) -> None:
    """A model that diverged is never written.

    Raises:
        TrainingError: a weight is not a finite number.
    """
    if not all(bool(weights.isfinite().all()) for weights in model.parameters()):
        raise diverged(f"weights are not finite numbers any more after step {step}")


class Diverged(TrainingError):
    """A loss, a gradient or a weight is not a finite number."""


def diverged(what: str) -> Diverged:
    """What to try then."""
    return Diverged(
        f"training diverged: {what}; lower train.learning_rate, warm up for longer (train.warmup_steps), or look for "
        "extreme scores in the data. Nothing of it was saved"
    )


def with_kept(error: Diverged, checkpoints: Path) -> Diverged:
    """The same error, which says what to go on from where there is a checkpoint: all are of finite weights."""
    found = list_checkpoints(checkpoints)
    if not found:
        return error
    newest = max(found, key=lambda one: one.step)
    return Diverged(
        f"{error}; the checkpoint of step {newest.step} is kept ({newest.path}): to go on from it, give another "
        "train.learning_rate and --allow-changes train.learning_rate"
    )


@contextmanager
def full_disk_told(folder: Path) -> Iterator[None]:
    """Around whatever writes into the folder of a run.

    Raises:
        TrainingError: in place of the error that says that the disk did not take it.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        is_disk = (
            error.errno in _DISK
            if isinstance(error, OSError)
            else any(one in str(error) for one in _NO_WRITE)
        )
        if not is_disk:
            raise
        why = " ".join(str(error).split())[:120]
        place = _place_of(error, folder)
        raise TrainingError(
            f"the disk did not take what was written to {place} ({why}): {_free(folder, place)}. What was saved before "
            "is whole: make room, and run it again (without --overwrite) to go on from it"
        ) from error


def _place_of(error: Exception, folder: Path) -> Path:
    """Where an error says that it could not write: the folder, or another one, such as that of a cache."""
    name = getattr(error, "filename", None)
    parent = Path(name).parent if isinstance(name, str) else folder
    inside = not parent.is_dir() or parent.resolve().is_relative_to(folder.resolve())
    return folder if inside else parent


def _free(folder: Path, place: Path) -> str:
    """What is needed and what there is, as far as a folder tells."""
    found = list_checkpoints(folder / "checkpoints") if place == folder else []
    needed = f"a checkpoint takes {in_bytes(size_of(found[-1:]))}, " if found else ""
    return f"{needed}{in_bytes(shutil.disk_usage(place).free)} are free"


def require_room(folder: Path, needed: int) -> None:
    """Check before a run that its folder has room for what it will write.

    Raises:
        TrainingError: it has not.
    """
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    free = shutil.disk_usage(there).free
    if free < needed * ROOM_TO_SPARE:
        raise TrainingError(
            f"output_dir: {folder} has {in_bytes(free)} free, and the checkpoints and the model of this run need "
            f"{in_bytes(int(needed * ROOM_TO_SPARE))}; make room, choose another output_dir, or keep less "
            "(train.save_total_limit)"
        )


def in_bytes(count: int) -> str:
    """A number of bytes as people read it.

    >>> in_bytes(999), in_bytes(270_000_000)
    ('999 bytes', '270.0 MB')
    """
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"
