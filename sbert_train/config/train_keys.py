"""The `train` block: transformers' own names, with our defaults and the names that are not for a user to set.

Plain data, so that the reference page can be made without importing transformers.
"""

from collections.abc import Mapping

TRAIN_DEFAULTS: Mapping[str, object] = {
    "per_device_train_batch_size": 64,
    "per_device_eval_batch_size": 1024,
    "num_train_epochs": 1,
    "learning_rate": 2e-5,
    "lr_scheduler_type": "linear",
    "warmup_steps": 0.1,
    "optim": "adamw_torch_fused",
    "logging_steps": 0.02,
    "save_total_limit": 2,
    "report_to": "none",
}
"""What a `train` block that does not say otherwise has; warmup_steps and logging_steps below 1 are shares of all steps.

Sentence-BERT (Reimers & Gurevych 2019, section 3.1): one epoch, Adam, 2e-5, linear warm-up over 10 % of the data.
"""

EARLY_STOPPING_KEYS = ("early_stopping_patience", "early_stopping_threshold")
"""Parameters of transformers.EarlyStoppingCallback, which are told in the same block."""

RENAMED: Mapping[str, str] = {
    "batch_size": "per_device_train_batch_size",
    "epochs": "num_train_epochs",
    "lr": "learning_rate",
    "evaluation_strategy": "eval_strategy",
    "warmup_ratio": "warmup_steps (below 1 it is a share of all steps)",
    "no_cuda": "use_cpu",
}
"""Names that people know from elsewhere -> the name that transformers 5 has for it."""

_AT_THE_TOP = "set `seed` at the top of the file"
_NO_LABELS = "the objective finds its labels by role; see data.train.*.columns"
_FIT = "`sbert-train fit` trains and evaluates, `sbert-train eval` evaluates"
_PUBLISH = "a run never publishes; upload its folder model/ when it is done"
_OUTPUT = "the texts' embeddings are evaluated by task; see data.eval"
_SHARDED = "a run is on one GPU or data-parallel under torchrun"
_PRECISION = "see engine.precision"
_LANGUAGE_MODELS = "it is for language models"
_SAMPLING = "see data.mixing and data.no_duplicates"

RESERVED: Mapping[str, str] = {
    "output_dir": "set `output_dir` at the top of the file",
    "seed": _AT_THE_TOP,
    "data_seed": _AT_THE_TOP,
    "do_train": _FIT,
    "do_eval": _FIT,
    "do_predict": _FIT,
    "resume_from_checkpoint": "pass --resume to `sbert-train fit`",
    "restore_callback_states_from_checkpoint": "a run that goes on takes all of them up",
    "save_only_model": "a run could not go on from its checkpoints; save_total_limit says how many are kept",
    "enable_jit_checkpoint": "a run that is told to stop is saved",
    "logging_nan_inf_filter": "a loss that is not a finite number ends the run",
    "ignore_data_skip": "a resumed run would see other rows",
    "remove_unused_columns": "roles are chosen by data.train.*.columns",
    "label_names": _NO_LABELS,
    "label_smoothing_factor": _NO_LABELS,
    "prediction_loss_only": _OUTPUT,
    "include_for_metrics": _OUTPUT,
    "batch_eval_metrics": _OUTPUT,
    "eval_do_concat_batches": _OUTPUT,
    "eval_use_gather_object": _OUTPUT,
    "eval_accumulation_steps": _OUTPUT,
    "eval_on_start": "the base model is always evaluated before the first step",
    "train_sampling_strategy": _SAMPLING,
    "length_column_name": _SAMPLING,
    "auto_find_batch_size": "it would change the number of negatives; set per_device_train_batch_size",
    "accelerator_config": "every process takes its share of each batch",
    "parallelism_config": _SHARDED,
    "fsdp": _SHARDED,
    "fsdp_config": _SHARDED,
    "deepspeed": _SHARDED,
    "local_rank": "it is told by torchrun",
    "torch_compile": "see engine.compile",
    "torch_compile_backend": "see engine.compile",
    "torch_compile_mode": "see engine.compile",
    "bf16_full_eval": _PRECISION,
    "fp16_full_eval": _PRECISION,
    "use_cache": _LANGUAGE_MODELS,
    "neftune_noise_alpha": _LANGUAGE_MODELS,
    "use_liger_kernel": _LANGUAGE_MODELS,
    "liger_kernel_config": _LANGUAGE_MODELS,
    "average_tokens_across_devices": _LANGUAGE_MODELS,
    "include_num_input_tokens_seen": _LANGUAGE_MODELS,
    "disable_tqdm": "the run has a progress bar of its own, and plain lines where it is no terminal",
    "push_to_hub": _PUBLISH,
    "hub_token": _PUBLISH,
    "hub_private_repo": _PUBLISH,
    "hub_model_id": _PUBLISH,
    "hub_strategy": _PUBLISH,
    "hub_always_push": _PUBLISH,
    "hub_revision": _PUBLISH,
}
"""TrainingArguments that are an error in `train`: what to use instead, or why there is nothing to set."""

AT_LEAST: Mapping[str, float] = {
    "per_device_train_batch_size": 1,
    "per_device_eval_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "weight_decay": 0,
    "warmup_steps": 0,
    "max_grad_norm": 0,
    "eval_delay": 0,
    "save_total_limit": 1,
    "dataloader_num_workers": 0,
    "early_stopping_patience": 1,
    "early_stopping_threshold": 0,
}
ABOVE: Mapping[str, float] = {
    "learning_rate": 0,
    "num_train_epochs": 0,
    "logging_steps": 0,
    "eval_steps": 0,
    "save_steps": 0,
    "adam_epsilon": 0,
}
"""Ranges of numbers that transformers itself would take without a word."""
