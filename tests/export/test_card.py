"""The card says what is so, the Hub's own parser reads it, and its code runs."""

import re
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData

from sbert_train import __version__
from sbert_train.evaluation.bootstrap import Estimate
from sbert_train.evaluation.compare import TaskComparison
from sbert_train.evaluation.tasks import TASKS
from sbert_train.export.card import HUB_TASKS, PLACE, CardFacts, model_card
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from tests.tiny import make_encoder, trained_head

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


def test_its_code_runs(encoder: SentenceEncoder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder.save(tmp_path)
    text = card(encoder)
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    exec(code[1].replace(PLACE, str(tmp_path)), {})
    printed = capsys.readouterr().out
    assert re.search(r"1\.0000, .*\n.*1\.0000", printed)  # 2 x 2 similarities, ones on the diagonal

    ours = re.search(r"`(from sbert_train import \w+)`, then `(.*?)`", text)
    assert ours is not None
    exec(
        f"{ours[1]}\nassert {ours[2]}.shape == (1, 32)".replace(PLACE, str(tmp_path)), {"texts": ["the cat"]}
    )


def test_the_code_of_a_model_with_two_heads_runs_and_names_the_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = make_encoder(head=trained_head(HeadSpec(dim=8, shared=False), 32))
    encoder.save(tmp_path)
    text = card(encoder)
    assert "Queries and documents have a head each" in text and 'role="document"' in text
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None and "encode_query" in code[1] and "encode_document" in code[1]
    exec(code[1].replace(PLACE, str(tmp_path)), {})
    assert re.search(
        r"tensor\(\[\[ ?-?0\.\d+, +-?0\.\d+\]\]\)", capsys.readouterr().out
    )  # 1 x 2 similarities
    ours = re.search(r"`(from sbert_train import \w+)`, then `(.*?)`", text)
    assert ours is not None and 'role="query"' in ours[2]
    exec(f"{ours[1]}\nassert {ours[2]}.shape == (1, 8)".replace(PLACE, str(tmp_path)), {"texts": ["the cat"]})
    assert "have a head each" not in card(make_encoder())


def test_every_kind_of_task_has_a_name_on_the_hub() -> None:
    assert set(HUB_TASKS) == set(TASKS)
