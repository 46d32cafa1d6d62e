"""A machine without memory, without disk, and figures that are none: what is said, and what is left."""

import errno
import json
import os
import resource
import shutil
import traceback
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sbert_train.config import RunConfig
from sbert_train.data.collator import collate
from sbert_train.errors import TrainingError
from sbert_train.training import checkpoints
from sbert_train.training.checkpoints import damage, list_checkpoints
from sbert_train.training.faults import (
    full_disk_told,
    is_out_of_memory,
    out_of_memory,
    require_finite,
    require_room,
)
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.trainer import SentenceTrainer
from tests.training.interruptions import EVERY_TWO, killed_in_step, moved, trained, weights_of
from tests.training.runs import config

NO_EVAL: dict[str, Any] = {**EVERY_TWO, "eval_strategy": "no"}


def checkpoints_of(settings: RunConfig) -> Path:
    return Path(settings.output_dir) / "checkpoints"


def require_whole(settings: RunConfig, steps: list[int]) -> None:
    """The checkpoints of these steps are whole, and there is nothing else."""
    found = list_checkpoints(checkpoints_of(settings))
    assert [one.step for one in found] == steps and [damage(one) for one in found] == [None] * len(steps)
    assert len(list(checkpoints_of(settings).iterdir())) == len(steps)


def forward_that(do: Callable[[Any, Any], Any], step: int) -> Any:
    """A forward of the model that does something else in one step."""
    inner, seen = SiameseModel.forward, [0]

    def forward(self: Any, batch: Any) -> Any:
        seen[0] += 1
        found = inner(self, batch)
        return do(*found) if seen[0] == step else found

    return forward


@pytest.mark.parametrize(("value", "words"), [(float("nan"), "nan"), (float("inf"), "inf")])
def test_a_loss_that_is_no_number_stops_the_run_at_its_step(
    value: float, words: str, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, tiny_model, train=NO_EVAL)
    whole, _ = trained(moved(settings, tmp_path / "whole"))
    with monkeypatch.context() as patch:
        patch.setattr(SiameseModel, "forward", forward_that(lambda loss, vectors: (loss * value, vectors), 6))
        with pytest.raises(
            TrainingError, match=rf"^training diverged: the loss of step 6 is {words}; lower train\."
        ) as told:
            trained(settings)
    kept = checkpoints_of(settings) / "checkpoint-4"
    assert f"the checkpoint of step 4 is kept ({kept}): to go on from it, give" in str(told.value)
    require_whole(settings, [2, 4])
    assert not (tmp_path / "run" / "model").exists()
    result, _ = trained(settings)
    assert weights_of(result.folder.model) == weights_of(whole.folder.model), "the next try had better luck"


def test_weights_that_the_last_step_made_no_numbers_are_told_with_its_number(
    tmp_path: Path, tiny_model: Path
) -> None:
    train = {"eval_strategy": "no", "save_strategy": "no", "max_steps": 1, "learning_rate": 1e38}
    train |= {"lr_scheduler_type": "constant", "warmup_steps": 0, "weight_decay": 10.0}
    with pytest.raises(TrainingError, match="weights are not finite numbers any more after step 1"):
        trained(config(tmp_path, tiny_model, train=train))


@pytest.mark.parametrize("clip", [1.0, 0.0])
def test_a_gradient_that_is_no_number_stops_the_run_before_the_optimizer(
    clip: float, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, tiny_model, train={**NO_EVAL, "max_grad_norm": clip})

    class Cursed(torch.autograd.Function):
        """Its value is right and its gradient is not."""

        @staticmethod
        def forward(ctx: Any, loss: torch.Tensor) -> torch.Tensor:
            return loss.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * float("nan")

    def curse(loss: torch.Tensor, vectors: Any) -> Any:
        return Cursed.apply(loss), vectors  # type: ignore[no-untyped-call]

    monkeypatch.setattr(SiameseModel, "forward", forward_that(curse, 5))
    with pytest.raises(TrainingError, match="the norm of the gradient of step 5 is nan"):
        trained(settings)
    require_whole(settings, [2, 4])


def test_a_model_that_is_not_finite_is_never_saved(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an optimizer may leave it behind finite gradients."""
    settings = config(tmp_path, tiny_model, train=NO_EVAL)
    step = SentenceTrainer.training_step

    def spoiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = step(self, *args, **kwargs)
        if self.state.global_step == 3:
            self.optimizer.param_groups[0]["lr"] = float("inf")
        return found

    monkeypatch.setattr(SentenceTrainer, "training_step", spoiled)
    with pytest.raises(TrainingError, match="weights are not finite numbers any more after step 4"):
        trained(settings)
    require_whole(settings, [2])


@pytest.mark.parametrize("spoiled", [0, 1, 2, 3])
def test_every_weight_is_looked_at(spoiled: int) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    require_finite(model, 1)
    with torch.no_grad():
        list(model.parameters())[spoiled].view(-1)[-1] = float("-inf")
    with pytest.raises(TrainingError, match="weights are not finite numbers any more after step 7"):
        require_finite(model, 7)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory"
        ),
        MemoryError(),
    ],
    ids=["gpu", "cpu", "python"],
)
def test_out_of_memory_is_told_with_the_next_sizes_to_try(
    error: Exception, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    settings = config(tmp_path, tiny_model, train=NO_EVAL)
    with monkeypatch.context() as patch:
        patch.setattr(SiameseModel, "forward", forward_that(fail, 4))
        with pytest.raises(
            TrainingError,
            match=r"^out of memory in step 4, with 8 rows of \d+ tokens \(the longest text has \d+\): try "
            r"engine\.gradient_cache=\d+, .* or train\.per_device_train_batch_size=4, or a smaller model\.max_length$",
        ) as caught:
            trained(settings)
    require_whole(settings, [2])
    cache = int(str(caught.value).partition("gradient_cache=")[2].partition(",")[0])
    less = RunConfig.model_validate(
        {**settings.model_dump(), "engine": {"gradient_cache": cache, "precision": "fp32"}}
    )
    result, _ = trained(less, allow_changes=["engine.gradient_cache"])
    assert json.loads(result.folder.report.read_text())["training"]["resumed_from"] == [2]


@pytest.mark.parametrize(
    ("lengths", "cache", "advice"),
    [
        ((30, 20, 30, 20), None, "try engine.gradient_cache=32, of the same gradient, or a smaller model."),
        (
            (5,) * 20,
            None,
            "try engine.gradient_cache=16, of the same gradient, or train.per_device_train_batch_size=4,",
        ),
        ((90, 3, 3, 4), None, "try a smaller model."),  # what holds the longest text holds the batch
        ((30, 20, 30, 20), 80, "try engine.gradient_cache=40, of the same gradient, or a smaller model."),
        ((30, 20, 30, 20), 40, "try a smaller model."),
    ],
)
def test_a_gradient_cache_is_named_where_it_can_be_smaller(
    lengths: tuple[int, ...], cache: int | None, advice: str
) -> None:
    texts = [np.full(length, number, dtype=np.int32) for number, length in enumerate(lengths)]
    rows = len(lengths) // 2
    batch = collate([{"anchor": texts[i], "positive": texts[i + rows]} for i in range(rows)])
    told = str(out_of_memory(batch, 7, cache))
    assert (
        f"out of memory in step 7, with {rows} rows of 100 tokens (the longest text has {max(lengths)}): {advice}"
        in told
    )


def test_out_of_memory_in_an_evaluation_names_its_own_size(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("sbert_train.model.encoder.SentenceEncoder.encode", fail)
    with pytest.raises(
        TrainingError, match=r"for an evaluation: try train.per_device_eval_batch_size=512, half"
    ):
        trained(config(tmp_path, tiny_model))


def test_other_errors_keep_their_traceback(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a fault of ours")

    assert not is_out_of_memory(RuntimeError("a fault of ours"))
    assert is_out_of_memory(torch.OutOfMemoryError("in words of another backend"))
    monkeypatch.setattr(SiameseModel, "forward", forward_that(fail, 2))
    with pytest.raises(RuntimeError, match="a fault of ours"):
        trained(config(tmp_path, tiny_model))


def test_a_disk_that_is_full_leaves_the_checkpoint_before(tmp_path: Path, tiny_model: Path) -> None:
    """The system itself refuses to write more than a limit to any file, which the optimizer's state is over."""
    settings = config(tmp_path, tiny_model, train=NO_EVAL)
    whole, _ = trained(moved(settings, tmp_path / "whole"))
    with killed_in_step(4):
        trained(settings)
    require_whole(settings, [2])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (checkpoints_of(settings) / "checkpoint-2" / "optimizer.pt").stat().st_size
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1000, limits[1]))
            trained(settings)
        except BaseException as error:
            said = "" if isinstance(error, TrainingError) else traceback.format_exc()
            (tmp_path / "said").write_text(said or str(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = (tmp_path / "said").read_text()
    assert said.startswith(f"the disk did not take what was written to {tmp_path / 'run'} (")
    assert ": a checkpoint takes " in said and "run it again (without --overwrite) to go on from it" in said
    assert "\n" not in said
    require_whole(settings, [2])
    result, _ = trained(settings)
    assert weights_of(result.folder.model) == weights_of(whole.folder.model)


def test_a_full_disk_while_the_log_is_written_is_told(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sbert_train.training.callbacks.JsonLog.on_log", fail)
    with pytest.raises(
        TrainingError, match=r"the disk did not take what was written to .*No space left on device"
    ):
        trained(config(tmp_path, tiny_model))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_elsewhere_is_named(number: int, tmp_path: Path) -> None:
    for name in ("run", "cache"):
        (tmp_path / name).mkdir()
    full = OSError(number, os.strerror(number), str(tmp_path / "cache" / "vectors.npy"))
    told = pytest.raises(TrainingError, match=rf"not take what was written to {tmp_path / 'cache'} \(")
    with told, full_disk_told(tmp_path / "run"):
        raise full
    with pytest.raises(PermissionError), full_disk_told(tmp_path / "run"):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_a_disk_without_room_is_told_before_the_run(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 10**5, 10**5))
    with pytest.raises(
        TrainingError, match=r"run has 100.0 kB free, and the checkpoints .* need \d+\.\d [kM]B;"
    ):
        trained(config(tmp_path, tiny_model))
    assert not (tmp_path / "run").exists()


def test_what_a_run_needs_is_what_it_takes(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("sbert_train.training.fit.require_room", lambda folder, needed: asked.append(needed))
    settings = config(tmp_path, tiny_model, train=NO_EVAL)
    result, _ = trained(settings)
    kept = list_checkpoints(result.folder.checkpoints)
    model = sum(path.stat().st_size for path in result.folder.model.rglob("*") if path.is_file())
    reports = sum(path.stat().st_size for path in (result.folder.page, result.folder.report))
    taken = checkpoints.size_of(kept) * 3 / 2 + model + reports
    assert len(kept) == 2, "two are kept, and for a moment there are three"
    assert taken / 1.1 < asked[0] < taken
    trained(settings)
    assert asked[1] < asked[0] - checkpoints.size_of(kept) / 2, "what is there needs no more room"
    more = {**NO_EVAL, "save_total_limit": 5}
    trained(config(tmp_path, tiny_model, output_dir=str(tmp_path / "more"), train=more))
    trained(config(tmp_path, tiny_model, output_dir=str(tmp_path / "best")))
    one = checkpoints.size_of(kept[:1])
    assert asked[2] - asked[0] == pytest.approx(3 * one, rel=0.3), "five are kept"
    assert asked[3] - asked[0] == pytest.approx(one, rel=0.3), "the best one besides"


def test_room_is_looked_for_where_the_folder_will_be(tmp_path: Path) -> None:
    require_room(tmp_path / "not" / "yet", 1)
    with pytest.raises(TrainingError, match="make room, choose another output_dir, or keep less"):
        require_room(tmp_path / "not" / "yet", 10**18)


def test_a_run_needs_some_room_to_spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1_050, 1_050))
    require_room(tmp_path, 1_000)
    with pytest.raises(TrainingError, match=r"has 1\.1 kB free, and .* need 1\.1 kB;"):
        require_room(tmp_path, 1_001)
