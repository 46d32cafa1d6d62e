"""Training arguments that both sides have in common, whatever is compared."""

from collections.abc import Mapping
from typing import Any

COMMON: Mapping[str, Any] = {
    "lr_scheduler_type": "linear",
    "warmup_steps": 0.1,  # below 1 it is a share of all steps
    "optim": "adamw_torch_fused",
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "eval_strategy": "no",
    "save_strategy": "no",
    "report_to": "none",
}
"""transformers.TrainingArguments: the last model is the result, nothing selects it."""
