"""Objectives by name, and the roles that they ask of a data set."""

import inspect

import pytest
import torch
from pydantic import BaseModel

from sbert_train.data.collator import collate
from sbert_train.errors import DataError
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.registry import OBJECTIVES, make_objective


def test_a_missing_role_is_named_with_what_was_found() -> None:
    with pytest.raises(
        DataError,
        match=r"data set nli: .* needs the roles anchor, positive; missing: positive; found: anchor, label",
    ):
        OBJECTIVES["in_batch_negatives"].roles_of("nli", ["anchor", "label"])


def test_optional_roles_are_used_when_they_are_there_and_others_are_not() -> None:
    objective = OBJECTIVES["in_batch_negatives"]
    assert objective.roles_of("a", ["label", "positive", "anchor"]) == ("anchor", "positive")
    assert objective.roles_of("a", ["negative", "positive", "anchor"]) == ("anchor", "positive", "negative")


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_options_of_the_configuration_are_those_of_the_function(name: str) -> None:
    from sbert_train.config import CosineRegression, InBatchNegatives

    blocks: dict[str, type[BaseModel]] = {
        "in_batch_negatives": InBatchNegatives,
        "cosine_regression": CosineRegression,
    }
    defaults = {key: field.default for key, field in blocks[name].model_fields.items() if key != "name"}
    parameters = list(inspect.signature(OBJECTIVES[name].function).parameters.values())[1:]
    assert defaults == {parameter.name: parameter.default for parameter in parameters}
    assert make_objective(name, **defaults).options == defaults


def test_rows_get_the_keys_of_their_texts() -> None:
    import numpy as np

    one, two = np.array([1, 2, 3], np.int32), np.array([4], np.int32)
    batch = collate([{"anchor": one, "negative": [two, one]}, {"anchor": two, "negative": [two, two]}])
    vectors = {"anchor": torch.zeros(2, 3), "negative": torch.zeros(2, 2, 3)}
    found = RoleEmbeddings.of(batch, vectors)
    assert found.vectors == vectors
    assert {role: keys.shape for role, keys in found.text_keys.items()} == {
        "anchor": (2,),
        "negative": (2, 2),
    }
    assert found.text_keys["anchor"][0] == found.text_keys["negative"][0, 1]
    assert found.text_keys["anchor"][0] != found.text_keys["anchor"][1]
