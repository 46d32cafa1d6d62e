"""The card says what is so, and the Hub's own parser reads it."""

import re
from dataclasses import replace
from math import isfinite
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData
from huggingface_hub.repocard_data import model_index_to_eval_results
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from sentence_transformers.sentence_transformer import losses

from sbert_train import __version__
from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.compare import TaskComparison
from sbert_train.evaluation.tasks import TASKS
from sbert_train.export.card import HUB_TASKS, CardFacts, HubSet, model_card
from sbert_train.export.losses import loss_names
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.objectives.registry import OBJECTIVES, objective_spec
from tests.tiny import make_encoder

CONFIG = "model: {base: org/base}\nseed: 42\n"


def figure(value: float) -> Estimate:
    return Estimate(value, value - 0.01, value + 0.02, 1000)


def comparison(task: str, kind: str, metric: str, *more: str) -> TaskComparison:
    def scores(value: float) -> dict[str, Estimate]:
        return {name: figure(value) for name in (metric, *more)}

    return TaskComparison(
        task=task,
        kind=kind,
        primary_metric=metric,
        n=1379,
        unit="pairs",
        details={},
        fingerprint="",
        scores={"before": scores(0.82034), "after": scores(0.86126)},
        differences={"after": scores(0.04092)},
    )


RESULTS = (
    comparison("stsb|test", "sts", "spearman_cosine", "pearson_cosine"),
    comparison("faq", "retrieval", "ndcg@10"),
)


def card(encoder: SentenceEncoder, **changes: object) -> str:
    facts = {
        "name": "my model: the second",
        "base": "org/base",
        "base_hub_id": "org/base",
        "results": RESULTS,
        "data": ("snli: 9,842 rows read, 3,329 kept",),
        "config": CONFIG,
        **changes,
    }
    return model_card(encoder, CardFacts(**facts))  # type: ignore[arg-type]


def metadata(text: str) -> ModelCardData:
    data = ModelCard(text).data
    assert isinstance(data, ModelCardData)
    return data


def test_the_hub_reads_its_metadata(encoder: SentenceEncoder) -> None:
    data = metadata(card(encoder))
    assert data.tags == ["sentence-transformers", "feature-extraction", "sentence-similarity"]
    assert data.pipeline_tag == "sentence-similarity"
    assert data.library_name == "sentence-transformers"
    assert data.base_model == "org/base"
    assert data.model_name == "my model: the second"
    found = {(r.task_type, r.dataset_name, r.metric_type): r.metric_value for r in data.eval_results or []}
    assert found == {
        ("semantic-similarity", "stsb|test", "spearman_cosine"): 0.8613,
        ("semantic-similarity", "stsb|test", "pearson_cosine"): 0.8613,
        ("information-retrieval", "faq", "ndcg@10"): 0.8613,
    }


def test_the_metadata_names_what_it_was_trained_with_as_the_hub_is_searched(encoder: SentenceEncoder) -> None:
    specs = [objective_spec("in_batch_negatives", matryoshka_dims=(16, 8)), objective_spec("cosent")]
    text = card(
        encoder, objectives=specs, rows=9842, datasets=("stanfordnlp/snli", "org/b", "stanfordnlp/snli")
    )
    data = metadata(text)
    assert data.tags == [
        *("sentence-transformers", "feature-extraction", "sentence-similarity", "dataset_size:9842"),
        *("loss:MatryoshkaLoss", "loss:MultipleNegativesRankingLoss", "loss:CoSENTLoss"),
    ]
    assert data.datasets == ["stanfordnlp/snli", "org/b"]
    assert (
        "- objective `in_batch_negatives`: `MultipleNegativesRankingLoss` in `MatryoshkaLoss` of "
        "sentence-transformers\n- objective `cosent`: `CoSENTLoss` of sentence-transformers\n"
    ) in text


def test_what_nobody_told_is_not_in_the_metadata(encoder: SentenceEncoder) -> None:
    told = yaml.safe_load(card(encoder, base_hub_id=None, results=()).split("---\n")[1])
    assert set(told) == {"tags", "pipeline_tag", "library_name"}
    assert not any(tag.startswith(("loss:", "dataset_size:")) for tag in told["tags"])


GUIDED = {"guide": "self", "guide_margin": 0.1}


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("in_batch_negatives", {}, ("MultipleNegativesRankingLoss",)),
        ("in_batch_negatives", {"symmetric": True}, ("MultipleNegativesRankingLoss",)),
        ("in_batch_negatives", {"hardness": "all", "hardness_strength": 5}, ("MultipleNegativesRankingLoss",)),
        ("in_batch_negatives", {"hardness": "all", "hardness_strength": 5, "symmetric": True}, ()),
        ("in_batch_negatives", {"learnable_scale": True}, ()),
        ("in_batch_negatives", GUIDED, ("GISTEmbedLoss",)),
        ("in_batch_negatives", {**GUIDED, "symmetric": True}, ()),
        ("cosine_regression", {}, ("CosineSimilarityLoss",)),
        ("angle", {}, ("AnglELoss",)),
        ("triplet", {}, ("TripletLoss",)),
        ("batch_triplet", {}, ("BatchHardTripletLoss",)),
        ("batch_triplet", {"mining": "semi_hard"}, ("BatchSemiHardTripletLoss",)),
        ("softmax", {}, ("SoftmaxLoss",)),
        ("contrastive", {}, ("ContrastiveLoss",)),
        ("online_contrastive", {}, ("OnlineContrastiveLoss",)),
        ("embedding_distillation", {"teacher": "x"}, ("EmbedDistillLoss",)),
        ("margin_mse", {"matryoshka_dims": (8,)}, ("MatryoshkaLoss", "MarginMSELoss")),
        ("cosent", {}, ("CoSENTLoss",)),
    ],
)  # fmt: skip
def test_an_objective_has_the_names_of_the_losses_that_it_equals(
    name: str, options: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert loss_names(objective_spec(name, **options)) == expected
    assert all(hasattr(losses, one) for one in expected), "sentence-transformers has them"


def test_every_objective_has_been_thought_of() -> None:
    options = {"embedding_distillation": {"teacher": "x"}}
    assert all(loss_names(objective_spec(name, **options.get(name, {}))) for name in OBJECTIVES)


def test_a_result_on_a_whole_set_of_the_hub_names_it(encoder: SentenceEncoder) -> None:
    stsb = HubSet("sentence-transformers/stsb", None, "test")
    data = metadata(card(encoder, evaluated_on={"stsb|test": stsb, "other": stsb}))
    found = {
        r.dataset_name: (r.dataset_type, r.dataset_config, r.dataset_split) for r in data.eval_results or []
    }
    assert found == {
        "stsb|test": ("sentence-transformers/stsb", None, "test"),
        "faq": ("unknown", None, None),
    }


def test_the_metadata_is_as_the_hub_wants_it_and_survives_being_written_again(
    encoder: SentenceEncoder,
) -> None:
    """What of the Hub's own check can be done without it."""
    text = card(
        encoder,
        objectives=[objective_spec("cosent")],
        rows=3,
        datasets=["org/data"],
        evaluated_on={"faq": HubSet("org/faq", "en", "test")},
    )
    raw = yaml.safe_load(text.split("---\n")[1])
    for repository in (raw["base_model"], *raw["datasets"]):
        validate_repo_id(repository)
    assert all(isinstance(tag, str) and tag.strip() == tag for tag in raw["tags"])
    assert len(set(raw["tags"])) == len(raw["tags"])
    (model,) = raw["model-index"]
    assert model["name"]
    for result in model["results"]:
        assert result["task"]["type"] in HUB_TASKS.values()
        assert result["dataset"]["type"] and result["dataset"]["name"]
        for metric in result["metrics"]:
            assert metric["type"] and isfinite(metric["value"])
    name, results = model_index_to_eval_results(raw["model-index"])
    assert name == "my model: the second" and len(results) == 3
    again = ModelCard(str(ModelCard(text)))
    assert again.data.to_dict() == metadata(text).to_dict() == raw  # type: ignore[no-untyped-call]


def test_a_figure_that_is_not_finite_stays_out_of_the_metadata(encoder: SentenceEncoder) -> None:
    broken = comparison("stsb", "sts", "spearman_cosine", "pearson_cosine")
    scores = {**broken.scores["after"], "pearson_cosine": figure(float("nan"))}
    data = metadata(card(encoder, results=(replace(broken, scores={**broken.scores, "after": scores}),)))
    assert [result.metric_type for result in data.eval_results or []] == ["spearman_cosine"]


def test_a_base_model_that_is_not_on_the_hub_is_told_in_words_only(encoder: SentenceEncoder) -> None:
    text = card(encoder, base="../my/base", base_hub_id=None)
    assert metadata(text).base_model is None
    assert f"Fine-tuned from `../my/base` with sbert-train {__version__}." in text


def test_the_table_has_the_primary_figures_before_and_after(encoder: SentenceEncoder) -> None:
    lines = card(encoder).splitlines()
    assert (
        "| stsb\\|test (1,379 pairs) | spearman_cosine | 0.8203 | 0.8613 | +0.0409 (+0.0309 to +0.0609) |"
        in lines
    )
    assert [line.split(" | ")[1] for line in lines if line.startswith("| faq")] == ["ndcg@10"]


def test_without_results_there_is_no_table(encoder: SentenceEncoder) -> None:
    text = card(encoder, results=())
    assert "## Results" not in text
    assert not metadata(text).eval_results


def test_data_and_configuration_are_in_it(encoder: SentenceEncoder) -> None:
    text = card(encoder)
    assert "- snli: 9,842 rows read, 3,329 kept" in text
    fenced = re.search(r"~~~~yaml\n(.*?)\n~~~~", text, re.DOTALL)
    assert fenced is not None
    assert yaml.safe_load(fenced[1]) == yaml.safe_load(CONFIG)


def test_it_says_how_the_model_reads_texts() -> None:
    encoder = make_encoder(
        pooling="cls", normalize=True, max_length=24, prompts={"query": 'say "it"\n', "x": ""}
    )
    text = card(encoder)
    assert "It reads 24 tokens of a text, pools by `cls`, and its vectors are scaled to length 1." in text
    assert (
        'Prompts, by their name (`prompt_name=` or, with sbert-train, `role=`): `query` puts `"say \\"it\\"\\n"`.'
        in text
    )
    plain = card(make_encoder(max_length=None))
    assert (
        "It reads texts of any length, pools by `mean`, and its vectors are not scaled to length 1." in plain
    )
    assert "Prompts" not in plain
    assert "a vector of 32 dimensions" in plain


def test_every_kind_of_task_has_a_name_on_the_hub() -> None:
    assert set(HUB_TASKS) == set(TASKS)
