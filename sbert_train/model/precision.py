"""The precision that a forward runs in: what the hardware is native to, and autocast to it."""

from contextlib import AbstractContextManager

import torch

PRECISIONS = ("fp32", "bf16", "auto")
"""What a forward without gradients can be asked for; auto is what `native_precision` says."""


def native_precision(use_cpu: bool) -> str:
    """`bf16` where the hardware itself multiplies matrices in bfloat16, else `fp32`: emulation is slower than fp32."""
    if not use_cpu:
        bf16 = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)
    else:
        # Names without promise, so that a version of torch without them means no.
        checks = (
            getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        )
        bf16 = any(check() for check in checks if check is not None)
    return "bf16" if bf16 else "fp32"


def forward_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Within the block, forwards on this device run in this precision, whatever autocast is around it.

    Args:
        precision: a name of PRECISIONS.
    """
    if precision == "auto":
        precision = native_precision(use_cpu=device.type == "cpu")
    # Autocast keeps the weights that it has cast until the outermost of its blocks ends. Cast here, without gradients,
    # they would have none in the rest of a block around this one.
    is_outermost = not torch.is_autocast_enabled(device.type)
    return torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=precision == "bf16", cache_enabled=is_outermost
    )
