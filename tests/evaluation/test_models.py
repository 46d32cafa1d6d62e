"""Models are compared with the prompts that they carry or are told, with their classifiers, and at equal dimensions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from safetensors.numpy import save_file

from sbert_train.errors import EvaluationError, ModelError
from sbert_train.evaluation.dimensions import evaluate_at
from sbert_train.evaluation.models import evaluate_models
from sbert_train.evaluation.tasks import make_task
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from tests.tiny import make_encoder, trained_head
from tests.training.runs import sentences

ROWS = sentences(30)
PAIRS = Dataset.from_dict(
    {
        "anchor": [row[0] for row in ROWS],
        "positive": [row[1] for row in ROWS],
        "sentence1": [row[0] for row in ROWS],
        "sentence2": [row[2] for row in ROWS],
        "label": [number % 3 for number in range(30)],
    }
)
SEARCH = [make_task("retrieval", "search", PAIRS.select_columns(["anchor", "positive"]))]
TOLD = {"anchor": "the red cat ", "positive": "not never "}
NAMED = {"query": "the red cat ", "document": "not never "}


def saved(folder: Path, name: str, **options: Any) -> str:
    make_encoder(**options).save(folder / name)
    return str(folder / name)


def figures(model: str, **options: Any) -> dict[str, float]:
    (task,) = evaluate_models([model], SEARCH, **options).tasks
    return {metric: figure.value for metric, figure in task.scores[model].items()}


# --- prompts ---


def test_a_model_without_prompts_is_given_those_that_eval_is_told(tmp_path: Path) -> None:
    base, tuned = saved(tmp_path, "base"), saved(tmp_path, "tuned", prompts=NAMED)
    assert figures(base) != figures(tuned)  # premise: the prompts matter
    assert figures(base, prompts=TOLD) == figures(tuned, prompts=TOLD) == figures(tuned)


def test_a_negative_is_given_the_prompt_that_is_told_for_a_positive(tmp_path: Path) -> None:
    columns = {"anchor": [row[0] for row in ROWS], "positive": [row[1] for row in ROWS]}
    triplets = Dataset.from_dict({**columns, "negative": [[row[2]] for row in ROWS]})
    task = make_task("triplet", "near", triplets)
    base, tuned = saved(tmp_path, "base"), saved(tmp_path, "tuned", prompts=NAMED)
    (found,) = evaluate_models([tuned, base], [task], prompts=TOLD).tasks
    assert {figure.value for figure in found.differences[base].values()} == {0.0}
    (own,) = evaluate_models([tuned, base], [task]).tasks
    assert {figure.value for figure in own.differences[base].values()} != {0.0}  # premise


@pytest.mark.parametrize("told", [None, {}])
def test_told_none_a_model_uses_its_own(tmp_path: Path, told: Any) -> None:
    tuned = saved(tmp_path, "tuned", prompts=NAMED)
    assert figures(tuned, prompts=told) == figures(tuned, prompts=TOLD)


@pytest.mark.parametrize(
    "told",
    [
        {"anchor": "the blue cat ", "positive": "not never "},  # another text
        {**TOLD, "sentence1": "the dog "},  # one that is told the model has not
        {"anchor": ""},  # told to put nothing before
    ],
)
def test_a_model_with_other_prompts_is_an_error_that_quotes_both(
    tmp_path: Path, told: dict[str, str]
) -> None:
    tuned = saved(tmp_path, "tuned", prompts=NAMED)
    with pytest.raises(
        EvaluationError, match=r"tuned carries the prompts .*, but eval is told .*; tell"
    ) as error:
        evaluate_models([tuned], SEARCH, prompts=told)
    carried, _, rest = str(error.value).partition("but eval is told")
    assert "document 'not never ', query 'the red cat '" in carried
    assert all(repr(text) in rest for text in told.values())


def test_a_prompt_that_eval_is_not_told_stays_the_models_own(tmp_path: Path) -> None:
    tuned = saved(tmp_path, "tuned", prompts=NAMED)
    assert figures(tuned, prompts={"anchor": TOLD["anchor"]}) == figures(tuned)


def test_prompts_are_compared_by_their_names(tmp_path: Path) -> None:
    tuned = saved(tmp_path, "tuned", prompts={**NAMED, "sentence1": ""})
    for told in (TOLD, {"anchor": TOLD["anchor"], "negative": TOLD["positive"]}, {**TOLD, "sentence2": ""}):
        assert figures(tuned, prompts=told) == figures(tuned)


def test_a_prompt_that_a_model_carries_for_a_role_is_compared_by_its_name_too(tmp_path: Path) -> None:
    tuned = saved(tmp_path, "tuned", prompts={"anchor": TOLD["anchor"], "document": TOLD["positive"]})
    assert figures(tuned, prompts=TOLD) == figures(tuned)


def test_prompts_that_no_role_asks_for_do_not_count(tmp_path: Path) -> None:
    other = saved(tmp_path, "other", prompts={"classification": "the fish ", "query": ""})
    assert figures(other, prompts=TOLD) == figures(saved(tmp_path, "base"), prompts=TOLD)
    default = saved(tmp_path, "default", prompts={"sts": "the fish "}, default_prompt_name="sts")
    with pytest.raises(EvaluationError, match=r"default carries the prompts sts 'the fish ', but"):
        evaluate_models([default], SEARCH, prompts=TOLD)


def test_a_role_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        EvaluationError, match=r"no role 'ancor' \(did you mean 'anchor'\?\); roles of texts are 'anch"
    ):
        evaluate_models([saved(tmp_path, "base")], SEARCH, prompts={"ancor": "x"})


def test_two_prompts_for_documents_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="positive and negative share the prompt 'document'"):
        evaluate_models([saved(tmp_path, "base")], SEARCH, prompts={"positive": "x", "negative": "y"})


# --- dimensions ---


def test_all_models_are_evaluated_at_the_dimensions(tmp_path: Path) -> None:
    models = [saved(tmp_path, "one"), saved(tmp_path, "two", seed=1)]
    comparison = evaluate_models(models, SEARCH, dims=(32, 16, 4))
    assert [task.task for task in comparison.tasks] == ["search", "search_dim16", "search_dim4"]
    for model in models:
        encoder = SentenceEncoder.load(model)
        expected = evaluate_at(SEARCH[0], lambda texts, role, e=encoder: e.encode(texts, role=role), (16, 4))  # type: ignore[misc]
        for task in comparison.tasks:
            values = {metric: figure.value for metric, figure in task.scores[model].items()}
            assert values == pytest.approx(dict(expected[task.task].metrics))


def test_a_smaller_model_has_its_own_figures_where_a_larger_one_is_cut_to_its_dimensions(
    tmp_path: Path,
) -> None:
    small = saved(tmp_path, "small", head=trained_head(HeadSpec(16, "tanh", 0.0, 1), 32))
    large = saved(tmp_path, "large")
    comparison = evaluate_models([small, large], SEARCH, dims=(16, 8))
    assert [task.task for task in comparison.tasks] == ["search", "search_dim16", "search_dim8"]
    own, same = comparison.tasks[0].scores, comparison.tasks[1].scores
    assert same[small] == own[small]
    assert same[large] != own[large]


def test_a_dimension_above_that_of_a_model_is_an_error_naming_both(tmp_path: Path) -> None:
    small = saved(tmp_path, "small", head=trained_head(HeadSpec(16, "tanh", 0.0, 1), 32))
    with pytest.raises(
        EvaluationError, match=r"small: expected dims from 1 to 16, .* found 24; leave it out"
    ):
        evaluate_models([saved(tmp_path, "large"), small], SEARCH, dims=(24, 8))


# --- classifiers ---


def test_a_model_is_judged_by_the_classifier_beside_it(tmp_path: Path) -> None:
    task = make_task("nli", "classes", PAIRS.select_columns(["sentence1", "sentence2", "label"]))
    model = saved(tmp_path, "tuned")
    with pytest.raises(EvaluationError, match=r"tuned: eval set 'classes': .* this model has no classifier"):
        evaluate_models([model], [task])

    folder = tmp_path / "tuned" / "classifier"
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps({"dimension": 32, "classes": 3, "concat": ["u", "v", "difference"], "normalize": False})
    )
    weight = np.random.default_rng(0).normal(size=(3, 96)).astype(np.float32)
    save_file({"weight": weight, "bias": np.zeros(3, np.float32)}, folder / "model.safetensors")

    encoder = SentenceEncoder.load(model)
    u, v = (encoder.encode(PAIRS[role][:], role=role) for role in ("sentence1", "sentence2"))
    predicted = (np.concatenate([u, v, np.abs(u - v)], axis=1) @ weight.T).argmax(axis=1)
    (found,) = evaluate_models([model], [task]).tasks
    assert found.scores[model]["accuracy"].value == pytest.approx(np.mean(predicted == PAIRS["label"][:]))
