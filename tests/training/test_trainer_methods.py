"""What is used of transformers' Trainer that it does not promise: a new version that changes it fails here first.

What the methods must do is tested by the runs that are interrupted; here stands what they are called with and by whom.
"""

import inspect

import pytest
from transformers import Trainer
from transformers.trainer_callback import DefaultFlowCallback, ExportableState, TrainerControl

from sbert_train.training.resumable import ResumableTrainer

SIGNATURES = {
    "train": ["self", "resume_from_checkpoint", "trial", "ignore_keys_for_eval"],
    "training_step": ["self", "model", "inputs", "num_items_in_batch"],
    "get_batch_samples": ["self", "epoch_iterator", "num_batches", "device"],
    "_get_grad_norm": ["self", "model", "grad_norm"],
    "_save_checkpoint": ["self", "model", "trial"],
    "_save_optimizer_and_scheduler": ["self", "output_dir"],
    "_save_scaler": ["self", "output_dir"],
    "_save_rng_state": ["self", "output_dir"],
    "_load_from_checkpoint": ["self", "resume_from_checkpoint", "model"],
    "_load_optimizer_and_scheduler": ["self", "checkpoint"],
    "_load_best_model": ["self"],
    "_determine_best_metric": ["self", "metrics", "trial"],
    "_load_scaler": ["self", "checkpoint"],
    "_load_rng_state": ["self", "checkpoint"],
    "_init_training_state": [
        *("self", "max_steps", "num_update_steps_per_epoch", "num_train_epochs"),
        *("resume_from_checkpoint", "trial"),
    ],
}
CALLED_BY = {
    "_save_checkpoint": "_maybe_log_save_evaluate",
    "_get_grad_norm": "_run_epoch",
    "training_step": "_run_epoch",
    "get_batch_samples": "_run_epoch",
    "_load_rng_state": "_run_epoch",
    "_load_from_checkpoint": "train",
    "_load_optimizer_and_scheduler": "_prepare_for_training",
    "_load_scaler": "_prepare_for_training",
    "_load_best_model": "_finalize_training",
    "_determine_best_metric": "_maybe_log_save_evaluate",
    "_init_training_state": "_inner_training_loop",
    "_load_callback_state": "_init_training_state",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_method_takes_what_it_took(name: str) -> None:
    assert list(inspect.signature(getattr(Trainer, name)).parameters) == SIGNATURES[name]


@pytest.mark.parametrize("name", CALLED_BY)
def test_the_method_is_called_where_it_was(name: str) -> None:
    assert f"self.{name}(" in inspect.getsource(getattr(Trainer, CALLED_BY[name]))


def test_every_private_method_that_is_replaced_is_watched() -> None:
    replaced = [name for name in vars(ResumableTrainer) if name.startswith("_") and hasattr(Trainer, name)]
    assert [name for name in replaced if name not in SIGNATURES and not name.startswith("__")] == []


def test_the_end_of_a_step_is_saved_behind_its_evaluation() -> None:
    source = inspect.getsource(Trainer._maybe_log_save_evaluate)
    assert source.index("self._evaluate(") < source.index("self._save_checkpoint(")
    source = inspect.getsource(Trainer._run_epoch)
    assert source.index("_get_grad_norm(") < source.index("self.optimizer.step()")


def test_callbacks_have_the_state_that_checkpoints_keep() -> None:
    assert issubclass(TrainerControl, ExportableState)
    assert {"should_training_stop", "should_save"} <= set(TrainerControl().state()["args"])
    assert {"on_step_end", "on_epoch_end"} <= set(vars(DefaultFlowCallback))
