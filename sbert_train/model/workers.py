"""Encoding in several processes: each has the encoder on a device of its own and is given one chunk after the other.

They are new interpreters (spawn), for a forked one can use neither CUDA nor the threads that its parent had. Each
talks to the parent through a pipe of its own, so that the end of either is seen by the other at once.
"""

import os
import pickle
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sbert_train.errors import EncodingError
from sbert_train.model.corpus import Chunk

Vectors = NDArray[np.float32]
SECONDS_TO_END = 5


def in_processes(
    encoder: nn.Module, devices: Sequence[str], chunks: Iterable[Chunk], options: Mapping[str, Any]
) -> Generator[tuple[Chunk, Vectors]]:
    """The (n, D) vectors of the distinct texts of each chunk, in the order in which they get done.

    Args:
        encoder: a TextEncoder; it goes to the processes through a temporary file, of which all that run on CPU map the
            same memory.
        devices: one for each process; those on CPU share the threads that torch has here.
        options: of `TextEncoder.encode`.

    Raises:
        EncodingError: a process ended before its work.
        Exception: what encode raised in a process, with the traceback of there as a note.
    """
    waiting = iter(chunks)
    first = list(islice(waiting, len(devices)))  # no more processes than there is work for
    with TemporaryDirectory(prefix="sbert-train-") as folder:
        file = Path(folder) / "encoder.pt"
        torch.save(encoder, file)
        with _workers(file, devices[: len(first)], options) as workers:
            busy: dict[_Worker, Chunk] = {}
            for worker, chunk in zip(workers, first, strict=True):
                worker.send(chunk)
                busy[worker] = chunk
            while busy:
                ready = wait([worker.pipe for worker in busy])
                for worker in [worker for worker in busy if worker.pipe in ready]:
                    chunk, vectors = busy.pop(worker), worker.receive()
                    following = next(waiting, None)
                    if (
                        following is not None
                    ):  # before the vectors are put away, so that it need not wait for that
                        worker.send(following)
                        busy[worker] = following
                    yield chunk, vectors


@dataclass(frozen=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    device: str

    def send(self, chunk: Chunk) -> None:
        # One chunk at a time: two that each wait for the other to read would wait for ever.
        try:
            self.pipe.send(chunk.texts)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended() from None

    def receive(self) -> Vectors:
        try:
            found = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            raise self._ended() from None
        if isinstance(found, Exception):
            raise found
        vectors: Vectors = found
        return vectors

    def _ended(self) -> EncodingError:
        self.process.join(SECONDS_TO_END)
        return EncodingError(
            f"the process that encodes on {self.device} ended with exit code {self.process.exitcode} before its work; "
            "a negative code is a signal, and -9 mostly means too little memory; a script that encodes in several "
            'processes must do so below `if __name__ == "__main__":`'
        )


@contextmanager
def _workers(file: Path, devices: Sequence[str], options: Mapping[str, Any]) -> Iterator[list[_Worker]]:
    """Processes that are gone after the block, whatever happens within it."""
    context = torch.multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // max(1, sum(device == "cpu" for device in devices)))
    workers: list[_Worker] = []
    try:
        for device in devices:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_work, args=(theirs, file, device, threads, dict(options)), daemon=True
            )
            process.start()
            theirs.close()  # the process has its own; with ours open its end would not be seen
            workers.append(_Worker(process, ours, device))
        yield workers
    finally:
        for worker in workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in workers:
            worker.process.join(SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _work(pipe: Connection, file: Path, device: str, threads: int, options: Mapping[str, Any]) -> None:
    """What a process does until its pipe is closed."""
    torch.set_num_threads(threads)
    os.environ["RAYON_NUM_THREADS"] = str(threads)  # those of the tokenizer
    encoder: Any = None
    while True:
        try:
            texts = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            if encoder is None:
                # Not weights only: it is the whole encoder, in a file that our parent has just written.
                encoder = torch.load(file, map_location="cpu", mmap=True, weights_only=False).to(device)
            answer = encoder.encode(texts, **options)
        except KeyboardInterrupt:  # Ctrl-C goes to all processes; what is to be said of it, the parent says
            return
        except Exception as error:
            answer = _portable(error, device)
        try:
            pipe.send(answer)
        except OSError:  # the parent is gone
            return


def _portable(error: Exception, device: str) -> Exception:
    """The error as it can go through a pipe, with a note of where it was raised."""
    where = f"in the process that encodes on {device}:\n{traceback.format_exc()}"
    error.add_note(where)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does when pickled
        return RuntimeError(where)
    return error
