"""The tables: for each, the cells that it asks for, and how it reads once they have run."""

from collections.abc import Mapping
from types import ModuleType

from benchmarks.speed.tables import (
    curves,
    defaults,
    encode,
    gradient_cache,
    hardware,
    losses,
    profile,
    training,
)

TABLES: Mapping[str, ModuleType] = {
    "hardware": hardware,
    "training": training,
    "profile": profile,
    "defaults": defaults,
    "losses": losses,
    "encode": encode,
    "gradient_cache": gradient_cache,
    "curves": curves,
}
"""Name -> module with `cells(machine, micro_tokens)`, `ALLOWANCE` and `section(results, device)`, in the page's order.

The hardware comes first: estimates and shares need its peak.
"""
