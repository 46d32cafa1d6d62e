"""The story of a check: all of a run that comes before its first step, and nothing of it kept."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import TrainingArguments, set_seed

from sbert_train import __version__
from sbert_train.config import RunConfig, dump_config
from sbert_train.errors import ConfigError
from sbert_train.evaluation.dimensions import evaluate_tasks
from sbert_train.paths import expanded
from sbert_train.streams import silently
from sbert_train.training.arguments import training_arguments
from sbert_train.training.everything_wrong import everything_wrong_told
from sbert_train.training.faults import in_bytes
from sbert_train.training.identity import identity_of, require_same_run
from sbert_train.training.measure import Measurement, measure
from sbert_train.training.parts import Parts, load_parts
from sbert_train.training.plan import Plan, make_plan, resume_lines, steps_in_words, trust_lines
from sbert_train.training.plan_warnings import PlanWarning
from sbert_train.training.resume import Start, choose_checkpoint
from sbert_train.training.run_folder import RunFolder
from sbert_train.training.selection import require_selectable
from sbert_train.training.trainer import SentenceTrainer

Say = Callable[[str], None]


@dataclass(frozen=True)
class Check:
    """What is known of a run before its first step."""

    base: str
    plan: Plan
    warnings: tuple[PlanWarning, ...]
    """Those of the plan, and what a run would refuse in its folder."""
    measured: Measurement | None
    first_process: bool
    """Whether this process is the one that reports."""

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps, with these keys:

        sbert_train: version     base     plan: [line, ...]
        data: {train: [SetFacts, ...], eval: [SetFacts, ...]}
        negatives: [Negatives with `text`, ...]     batches_per_epoch     steps     epochs
        measured: Measurement, or null
        warnings: [{key, message}, ...]
        """
        plan = self.plan
        return {
            "sbert_train": __version__,
            "base": self.base,
            "plan": list(plan.lines),
            "data": plan.examined.to_json(),
            "negatives": [{**asdict(one), "text": str(one)} for one in plan.negatives],
            "batches_per_epoch": plan.batches_per_epoch,
            "steps": plan.steps,
            "epochs": plan.epochs,
            "measured": None if self.measured is None else self.measured.to_json(),
            "warnings": [asdict(one) for one in self.warnings],
        }


def check(config: RunConfig, *, measuring: bool = False, say: Say = print) -> Check:
    """Read the data and the model of a run, and tell all that can be known without training.

    Args:
        measuring: train two steps and throw them away, for time and memory.
        say: receives the plan, one line at a time.

    Raises:
        SbertTrainError: what a run would not begin with.
    """
    folder = RunFolder(expanded(config.output_dir))
    with TemporaryDirectory() as nothing_kept:
        with everything_wrong_told(config):
            folder.require_ours()
            args = training_arguments(config, output_dir=nothing_kept)
        first = args.process_index == 0
        tell, hide = say if first else silently, config.without_environment

        def say_hidden(line: str) -> None:
            tell(hide(line))

        for line in trust_lines(config):
            say_hidden(line)
        set_seed(config.seed)
        with everything_wrong_told(config):
            parts = load_parts(config, args)
        base = str(config.as_written(("model", "base"), config.model.base))
        plan = make_plan(config, base, parts, args)
        for line in plan.lines:
            say_hidden(line)
        _require_trainable(parts, args)
        refused = _would_go_on(config, parts, args, folder, say_hidden)
        for warning in refused:
            say_hidden(f"WARNING    {warning}")
        measured = measure(config, parts, plan.steps) if measuring else None
    if measured is not None:
        say_hidden(f"measured   {describe_measurement(measured, plan)}")
    return Check(base, plan, (*plan.warnings, *refused), measured, first)


def _require_trainable(parts: Parts, args: TrainingArguments) -> None:
    """The optimizer and its schedule can be made, and the metric that selects the best model is one of the eval sets.

    Raises:
        ConfigError: it is not so.
    """
    trainer = SentenceTrainer(
        parts.model,
        args,
        rows=parts.data.rows,
        batches=parts.data.batches,
        tasks=parts.tasks,
        frozen=parts.frozen,
    )
    trainer.require_optimizer()
    dimension, random = parts.model.encoder.dimension, np.random.default_rng(0)

    def anything(texts: Sequence[str], role: str) -> NDArray[np.float32]:
        return random.standard_normal((len(texts), dimension), dtype=np.float32)

    # Of any vectors: which metrics there are does not depend on them.
    results = evaluate_tasks(parts.tasks, anything, dims=parts.evaluated_dims, classify=parts.model.classify)
    require_selectable(args, results)


def _would_go_on(
    config: RunConfig, parts: Parts, args: TrainingArguments, folder: RunFolder, say: Say
) -> list[PlanWarning]:
    """Say where a run would go on, and give back why it would not begin."""
    start, root = Start(), folder.root.absolute()
    try:
        there = next(one for one in (root, *root.parents) if one.exists())
        TemporaryDirectory(prefix=".sbert-train-", dir=there).cleanup()
    except OSError as error:
        return [PlanWarning("output_dir", f"{folder.root} cannot be written to: {error.strerror or error}")]
    try:
        needs_best = bool(args.load_best_model_at_end)
        chosen = choose_checkpoint(folder, start, dump_config(config), needs_best=needs_best, say=say)
        identity = identity_of(config, args, parts.model.encoder, parts.data.sets, parts.eval_sets)
        for line in resume_lines(chosen, require_same_run(chosen, identity, start)):
            say(line)
    except ConfigError as error:
        told = "; ".join(str(error).splitlines())
        return [PlanWarning("output_dir", told.removeprefix("output_dir: "))]
    return []


def describe_measurement(measured: Measurement, plan: Plan) -> str:
    """Time and memory of a run, in a line."""
    parts = [
        f"{measured.seconds_per_step:.2f} s a step, {measured.pairs_per_second:,.1f} pairs/s: about "
        f"{_duration(measured.seconds)} for {steps_in_words(plan.steps)}, evaluations not included",
        f"{in_bytes(measured.peak_memory_bytes)} of memory at most"
        + ("" if measured.memory_bytes is None else f", of {in_bytes(measured.memory_bytes)}"),
    ]
    if measured.largest_batch_size is not None:
        parts.append(f"train.per_device_train_batch_size of about {measured.largest_batch_size:,} would fit")
    return "; ".join(parts)


def _duration(seconds: float) -> str:
    """A time as people say it.

    >>> [_duration(seconds) for seconds in (12.3, 200, 7_300)]
    ['12 s', '3 min 20 s', '2 h 1 min']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
