"""The Trainer: transformers' own, with a loss of one encode and one objective, and evaluation by tasks."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from accelerate.utils import gather_object
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.training_args import OptimizerNames

from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.data.mixing import MixedBatches
from sbert_train.data.rows import MixedRows
from sbert_train.errors import ConfigError, EvaluationError
from sbert_train.evaluation.dimensions import evaluate_tasks
from sbert_train.evaluation.tasks import Task, TaskResult
from sbert_train.model.head import Head
from sbert_train.training import faults
from sbert_train.training.monitors import Judge, Monitors, ProbeSet
from sbert_train.training.progress import Progress
from sbert_train.training.resumable import ResumableTrainer
from sbert_train.training.siamese import SiameseModel
from sbert_train.training.stopwatch import Stopwatch
from sbert_train.training.vectors import FrozenTexts

BATCH = "batch"  # the one entry of the mapping that Trainer wants a batch to be


def collate_inputs(rows: Any) -> dict[str, TextBatch]:
    """The packed batch of some rows (the Columns that `MixedRows` reads), as Trainer's inputs."""
    return {BATCH: collate(rows)}


def _require_used(args: TrainingArguments) -> None:
    """Raise ValueError for a part of optim_args that Trainer would take and then ignore."""

    def given_to_optimizer(optim_args: str | None) -> Any:
        asked = copy(args)
        asked.optim_args = optim_args
        return Trainer.get_optimizer_cls_and_kwargs(asked)

    for part in (args.optim_args or "").replace(" ", "").split(","):
        if part and given_to_optimizer(part) == given_to_optimizer(None):
            raise ValueError(
                f"expected arguments that optim {OptimizerNames(args.optim).value} takes from here, found {part}"
            )


class EpochOrder(TrainerCallback):
    """Tells the batches their epoch. Trainer does so, too, but not where it goes on within an epoch as one of several
    processes: there two wrappers lie around them, and it looks into one."""

    def __init__(self, batches: MixedBatches) -> None:
        self._batches = batches

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """The epoch is its number plus the share that is done."""
        self._batches.set_epoch(int(state.epoch or 0))


class Opening(TrainerCallback):
    """Logs the results of the base before the first step, so that curves begin with them."""

    def __init__(self, trainer: "SentenceTrainer") -> None:
        self._trainer = trainer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """But not of a run that goes on, whose log has them."""
        if state.global_step == 0:
            state.epoch = 0.0
            if self._trainer.baseline:
                self._trainer.log(metrics_of(self._trainer.baseline))


def metrics_of(results: Mapping[str, TaskResult], prefix: str = "eval") -> dict[str, float]:
    """The figures of tasks under the names that Trainer logs them by: {prefix}_{task}_{metric}."""
    return {
        f"{prefix}_{name}_{metric}": value
        for name, result in results.items()
        for metric, value in result.metrics.items()
    }


class SentenceTrainer(ResumableTrainer):
    """Trains an encoder on batches of several data sets and evaluates it by tasks."""

    def __init__(
        self,
        model: SiameseModel,
        args: TrainingArguments,
        *,
        rows: MixedRows,
        batches: MixedBatches,
        tasks: Sequence[Task] = (),
        dims: Sequence[int] = (),
        frozen: FrozenTexts | None = None,
        probe: Sequence[ProbeSet] = (),
        judge: Judge | None = None,
        callbacks: Sequence[TrainerCallback] = (),
        started: float | None = None,
        progress: Progress | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up training.

        Args:
            args: with remove_unused_columns False and, for several processes, accelerator_config.split_batches True.
            batches: batches of all processes together; each process takes its share of every one.
            tasks: what `evaluate` runs, under the metric names eval_{task}_{metric}.
            dims: dimensions at which the tasks are evaluated besides all of them, as eval_{task}_dim{d}_{metric}.
            frozen: the pooled vectors of texts, where the backbone does not train.
            probe: the rows that monitors look at; none: there are no monitors.
            judge: is shown what monitors read.
            started: when the run began, as for `Stopwatch`.
            progress, identity: as for ResumableTrainer.
        """
        progress = progress or Progress()
        self.stopwatch = Stopwatch(started, progress)
        # Trainer would wrap the model in DataParallel, which cannot split a packed batch; torchrun uses every GPU.
        args._n_gpu = min(args.n_gpu, 1)
        super().__init__(
            model=model,
            args=args,
            train_dataset=rows,
            eval_dataset={task.name: task for task in tasks} or None,
            data_collator=collate_inputs,
            # Those that log come behind those that take the log up.
            callbacks=[
                EpochOrder(batches),
                self.stopwatch,
                *callbacks,
                Opening(self),
                *([Monitors(probe, self._encode_finite, self.log, judge)] if probe else []),
            ],
            progress=progress,
            identity=identity,
        )
        self.remove_callback(PrinterCallback)
        self.encoder = model.encoder
        self.siamese = model
        self.rows = rows
        self.batches = batches
        self.tasks = tuple(tasks)
        self.dims = tuple(dims)
        self.baseline: Mapping[str, TaskResult] = {}
        """What is logged at step 0: the results of the base."""
        self._frozen = frozen
        self._evaluated: tuple[int, dict[str, TaskResult]] | None = None
        self.last: dict[str, TaskResult] | None = None
        """The results of the model of the last step, where a better one replaced it; empty where no figure of it is
        defined."""

    def compute_loss(
        self,
        model: Any,
        inputs: Mapping[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """One encode of a batch and its objective; the mean over rows, which Trainer scales for accumulation."""
        batch: TextBatch = inputs[BATCH]
        self.progress.rows += batch.rows * self.args.world_size
        self.tokens_here += batch.input_ids.numel()
        loss, vectors = model(batch)
        return (loss, vectors) if return_outputs else loss

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Trainer's.

        Raises:
            TrainingError: the loss is not a finite number, or there was not enough memory.
        """
        try:
            return super().training_step(model, inputs, num_items_in_batch)
        except (RuntimeError, MemoryError) as error:
            if not faults.is_out_of_memory(error):
                raise
            step = self.state.global_step + 1
            raise faults.out_of_memory(inputs[BATCH], step, self.encoder.gradient_cache) from error

    def require_optimizer(self) -> None:
        """Make the optimizer and its schedule once: what a library or a missing package says to their arguments is
        better heard early.

        Raises:
            ConfigError: one of them cannot be made.
        """
        try:
            key = "train.optim_args"
            _require_used(self.args)
            key = "train.optim"
            self.create_optimizer()
            key = "train.lr_scheduler_kwargs"
            self.create_scheduler(num_training_steps=100)
        except (ValueError, TypeError, ImportError, RuntimeError) as error:
            raise ConfigError(f"{key}: {' '.join(str(error).split())}") from error
        finally:
            self.optimizer = self.lr_scheduler = None  # training makes its own

    def get_decay_parameter_names(self, model: nn.Module) -> list[str]:
        """Trainer's choice of weights that decay, but for a learnt scale: decay would draw it to 1."""
        return [name for name in super().get_decay_parameter_names(model) if not name.endswith("log_scale")]

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Batches in the order of `self.batches`, prepared by accelerate so that they can be resumed and shared out."""
        loader = DataLoader(
            self.rows,
            batch_sampler=self.batches,
            collate_fn=collate_inputs,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
            persistent_workers=self.args.dataloader_persistent_workers,
            prefetch_factor=self.args.dataloader_prefetch_factor,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The batches of an optimizer step; the time that this takes is what input costs."""
        with self.stopwatch.reading():
            return super().get_batch_samples(*args, **kwargs)

    def evaluate(
        self,
        eval_dataset: Any = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Run all tasks; the metrics are logged and seen by callbacks as those of any Trainer."""
        results = self.run_tasks()
        self._evaluated = self.state.global_step, results
        metrics = metrics_of(results, metric_key_prefix)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def before_best(self) -> None:
        """Judge the model of the last step, unless the last evaluation has."""
        if self._evaluated is not None and self._evaluated[0] == self.state.global_step:
            self.last = self._evaluated[1]
            return
        try:
            self.last = self.run_tasks()
        except EvaluationError:  # such as of a model that has collapsed since the best one
            self.last = {}

    def run_tasks(self) -> dict[str, TaskResult]:
        """The result of each task for the encoder as it is now; the same on every process."""
        return self._results_of(self.tasks)

    def run_tasks_with(self, head: Head | None) -> dict[str, TaskResult]:
        """The same with another head, under the same names; but what judges a classifier judges it as it is now, for
        it reads what this head gives."""
        results = self._results_of([task for task in self.tasks if task.uses_classifier])
        own, dimension = self.encoder.head, self.encoder.dimension
        self.encoder.head = None if head is None else head.to(self.encoder.device)
        try:
            return results | self._results_of(
                [task for task in self.tasks if not task.uses_classifier], at_least=dimension
            )
        finally:
            self.encoder.head = own

    def _results_of(self, tasks: Sequence[Task], at_least: int = 0) -> dict[str, TaskResult]:
        """The results of some tasks, where embeddings of fewer dimensions are filled up with zeros, which change no
        similarity: cut to more than they have, they are all that they are."""

        def encode(texts: Sequence[str], role: str) -> NDArray[np.float32]:
            embeddings = self._encode(texts, role)
            missing = max(0, at_least - embeddings.shape[1])
            return np.pad(embeddings, ((0, 0), (0, missing))) if missing else embeddings

        return evaluate_tasks(tasks, encode, dims=self.dims, classify=self.siamese.classify)

    def _encode(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        """(N, D): each process encodes its share of the texts, and all of them get the whole."""
        processes, rank = self.args.world_size, self.args.process_index
        share = texts[rank::processes]
        own = self._encode_share(share, role) if self._frozen is None else self._frozen.encode(share, role)
        if processes == 1:
            return own
        embeddings = np.empty((len(texts), self.encoder.dimension), dtype=np.float32)
        for number, part in enumerate(gather_object([own])):
            embeddings[number::processes] = part
        return embeddings

    def _encode_finite(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        """The same.

        Raises:
            TrainingError: a weight is not finite.
        """
        embeddings = self._encode(texts, role)
        if not np.isfinite(embeddings).all():
            faults.require_finite(self.model, self.state.global_step)
        return embeddings

    def _encode_share(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        try:
            return self.encoder.encode(texts, role=role, batch_size=self.args.eval_batch_size)
        except (RuntimeError, MemoryError) as error:
            if not faults.is_out_of_memory(error):
                raise
            raise faults.evaluation_out_of_memory(self.args.eval_batch_size) from error
