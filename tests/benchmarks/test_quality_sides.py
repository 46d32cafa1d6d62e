"""Both sides are set up with the same settings; nothing is trained here."""

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses

from benchmarks.losses import make_loss
from benchmarks.quality.experiments import EXPERIMENTS, training_arguments
from benchmarks.quality.ours import run_config
from sbert_train.config import RunConfig
from sbert_train.training.arguments import training_arguments as our_arguments

SAME = (
    *("per_device_train_batch_size", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type"),
    *("warmup_steps", "optim", "weight_decay", "max_grad_norm", "adam_beta1", "adam_beta2", "adam_epsilon"),
    *("gradient_accumulation_steps", "dataloader_drop_last", "bf16", "fp16", "seed"),
    *("eval_strategy", "save_strategy", "load_best_model_at_end"),
)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_both_sides_train_with_the_same_arguments(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    ours = our_arguments(RunConfig.model_validate(run_config(experiment, tmp_path, 7, None)))
    peer = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path), seed=7, **training_arguments(experiment)
    )
    assert peer.learning_rate == experiment.learning_rate
    assert {key: getattr(ours, key) for key in SAME} == {key: getattr(peer, key) for key in SAME}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stsb_cosent", losses.CoSENTLoss),
        ("stsb_regression", losses.CosineSimilarityLoss),
        ("snli_pairs", losses.MultipleNegativesRankingLoss),
        ("snli_triplets", losses.MultipleNegativesRankingLoss),
        ("snli_softmax", losses.SoftmaxLoss),
        ("trecqa", losses.MultipleNegativesRankingLoss),
    ],
)
def test_the_peer_has_the_loss_of_each_experiment(name: str, kind: type, tiny_model: Path) -> None:
    model = SentenceTransformer(str(tiny_model), device="cpu")
    objective = EXPERIMENTS[name].objective
    loss = make_loss(objective, model)
    assert type(loss) is kind
    assert getattr(loss, "scale", None) == objective.get("scale")


def test_two_objectives_take_the_same_rows_in_turn(tmp_path: Path) -> None:
    config = RunConfig.model_validate(run_config(EXPERIMENTS["stsb_in_turn"], tmp_path, 7, None))
    assert [one.name for one in config.objectives] == ["cosent", "cosine_regression"]
    assert (
        len({one.source for one in config.data.train}) == 1 and config.data.mixing.strategy == "round_robin"
    )
    assert our_arguments(config).max_grad_norm == 0.1


def test_texts_are_kept_apart_where_rows_are_each_others_negatives() -> None:
    assert {name for name, one in EXPERIMENTS.items() if one.no_duplicates} == {
        "snli_pairs",
        "snli_triplets",
        "trecqa",
        "trecqa_head",
    }
