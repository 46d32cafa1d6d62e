"""Objectives by name, and the roles that they ask of a data set."""

import pytest
import torch

from sbert_train.data.collator import collate
from sbert_train.errors import DataError
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.registry import objective_spec


def test_a_missing_role_is_named_with_what_was_found() -> None:
    with pytest.raises(
        DataError,
        match=r"data set nli: .* needs the roles anchor, positive; missing: positive; found: anchor, label",
    ):
        objective_spec("in_batch_negatives").roles_of("nli", ["anchor", "label"])


def test_optional_roles_are_used_when_they_are_there_and_others_are_not() -> None:
    objective = objective_spec("in_batch_negatives")
    assert objective.roles_of("a", ["label", "positive", "anchor"]) == ("anchor", "positive")
    assert objective.roles_of("a", ["negative", "positive", "anchor"]) == ("anchor", "positive", "negative")


def test_an_objective_without_needs_wants_at_least_one_text() -> None:
    distillation = objective_spec("embedding_distillation", teacher="t")
    assert distillation.roles_of("a", ["label", "sentence1", "anchor"]) == ("anchor", "sentence1")
    with pytest.raises(
        DataError, match="data set a: objective embedding_distillation needs one of the roles anchor"
    ):
        distillation.roles_of("a", ["label"])


def test_a_matryoshka_loss_has_a_classifier_for_each_dimension() -> None:
    built = objective_spec("softmax", matryoshka_dims=(8, 4)).build(8, classes=3)
    assert [tuple(weights.shape) for weights in built.parameters()] == [(3, 24), (3,), (3, 12), (3,)]


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
