"""The rows of all processes on each of them, with gradients that flow back to where they came from.

B rows of one process, W processes.
"""

import torch
import torch.distributed as dist
from torch import Tensor


def gather_rows(rows: Tensor) -> Tensor:
    """(B, ...) of each process -> (W * B, ...) on every process, in the order of ranks; B must be the same on all.

    The gradient of a process' own rows is the sum over all processes' losses. Averaged over processes, as
    DistributedDataParallel does with the weights' gradients, it equals that of one process with the batch W * B.
    """
    if not is_distributed():
        return rows
    gathered: Tensor = _Gather.apply(rows) if rows.requires_grad else _all_gather(rows)  # type: ignore[no-untyped-call]
    return gathered


def rank() -> int:
    """The number of this process, 0 when there is only one."""
    return dist.get_rank() if is_distributed() else 0


def is_distributed() -> bool:
    """Whether other processes take part."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _all_gather(rows: Tensor) -> Tensor:
    parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows.contiguous())
    return torch.cat(parts)


class _Gather(torch.autograd.Function):
    """all_gather forward; backward, the sum over processes of the gradients of this process' rows."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor) -> Tensor:
        ctx.rows = len(rows)  # type: ignore[attr-defined]
        return _all_gather(rows)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        count: int = ctx.rows  # type: ignore[attr-defined]
        return total[dist.get_rank() * count : (dist.get_rank() + 1) * count]
