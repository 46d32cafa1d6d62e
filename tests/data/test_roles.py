"""Columns become roles by the config or by their own names, and by nothing else."""

import re
from typing import Any

import pytest
import yaml

from sbert_train.data.roles import resolve_roles
from sbert_train.errors import DataError


@pytest.mark.parametrize(
    ("found", "mapped", "where", "expected"),
    [
        (["positive", "anchor"], {}, {}, {"anchor": ("anchor",), "positive": ("positive",)}),
        (["premise", "label"], {"anchor": "premise"}, {}, {"anchor": ("premise",), "label": ("label",)}),
        (["anchor", "title"], {"anchor": "title"}, {}, {"anchor": ("title",)}),
        (["text"], {"anchor": "text", "positive": "text"}, {}, {"anchor": ("text",), "positive": ("text",)}),
        (["anchor", "label"], {"label": None}, {}, {"anchor": ("anchor",)}),
        (["anchor", "label"], {}, {"label": "entailment"}, {"anchor": ("anchor",)}),
        (["anchor", "label"], {}, {"label": ["0", 1]}, {"anchor": ("anchor",), "label": ("label",)}),
        (
            ["anchor", "label"],
            {"label": "label"},
            {"label": "x"},
            {"anchor": ("anchor",), "label": ("label",)},
        ),
        (["anchor", "Positive", "negatives"], {}, {}, {"anchor": ("anchor",)}),
    ],
)
def test_a_mapped_column_wins_over_one_that_bears_the_name_of_the_role(
    found: list[str], mapped: dict[str, Any], where: dict[str, Any], expected: dict[str, tuple[str, ...]]
) -> None:
    assert resolve_roles(found, mapped, where) == expected


@pytest.mark.parametrize(
    ("found", "mapped", "expected"),
    [
        (["negative_10", "negative_2", "negative"], {}, ("negative", "negative_2", "negative_10")),
        (["negative_1", "negative_0"], {}, ("negative_0", "negative_1")),
        (["hard", "negative"], {"negative": ["hard", "negative"]}, ("hard", "negative")),
        (["hard", "negative"], {"negative": "hard"}, ("hard",)),
        (["negative_a", "anchor"], {}, None),
    ],
)
def test_negatives_are_the_mapped_columns_or_the_numbered_ones_in_order(
    found: list[str], mapped: dict[str, Any], expected: tuple[str, ...] | None
) -> None:
    assert resolve_roles(found, mapped, {}).get("negative") == expected


@pytest.mark.parametrize(
    ("mapped", "words"),
    [
        (
            {"anchr": "premise"},
            "there is no role 'anchr' (did you mean 'anchor'?); roles are 'anchor', 'positive', ",
        ),
        (
            {"anchor": "Premise"},
            "anchor: there is no column 'Premise' (did you mean 'premise'?); columns found: ",
        ),
        (
            {"negative": ["premise", "q"]},
            "negative: there is no column 'q'; columns found: 'premise', 'hypothesis'",
        ),
        ({"anchor": ["premise", "hypothesis"]}, "anchor takes one column, found 'premise', 'hypothesis'"),
        ({}, "no column bears a role's name; map columns to roles, "),
    ],
)
def test_what_cannot_be_resolved_is_refused_with_what_was_found(mapped: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as raised:
        resolve_roles(["premise", "hypothesis"], mapped, {})
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            ["Anchor", " Positive"],
            'no column bears a role\'s name; did you mean `columns: {anchor: "Anchor", positive: " Positive"}`? '
            "columns found: 'Anchor', ' Positive'",
        ),
        (["Negative_1", "NEGATIVE_2"], '`columns: {negative: ["Negative_1", "NEGATIVE_2"]}`'),
        (["Label", "LABEL"], '`columns: {label: "Label"}`'),
        (
            ["Anchors"],
            "map columns to roles, such as `columns: {anchor: …, positive: …}`; columns found: 'Anchors'",
        ),
        (
            ["anchor", " positive"],
            'the name of a role has white space around it; did you mean `columns: {positive: " positive"}`? (null '
            "leaves a role out); columns found: 'anchor', ' positive'",
        ),
        (["negative_1", "negative_2\t"], '`columns: {negative: ["negative_1", "negative_2\\t"]}`'),
    ],
)
def test_a_role_whose_name_is_written_otherwise_is_told_with_what_to_write(
    found: list[str], words: str
) -> None:
    with pytest.raises(DataError) as raised:
        resolve_roles(found, {}, {})
    assert words in str(raised.value)
    advice = re.search(r"`columns: (\{.*\})`\?", str(raised.value))
    if advice:
        assert resolve_roles(found, yaml.safe_load(advice[1]), {}), "the advice is one that helps"


@pytest.mark.parametrize(
    ("found", "mapped", "where"),
    [
        (["anchor", " positive"], {"positive": None}, {}),
        (["anchor", " positive"], {"positive": " positive"}, {}),
        (["anchor", " label"], {}, {" label": "x"}),
        (["anchor", "positive", " positive"], {}, {}),
        (["anchor", "negative_1", "negative_2", "Positive"], {}, {}),
    ],
)
def test_white_space_around_a_name_is_no_matter_where_the_role_is_told_or_borne(
    found: list[str], mapped: dict[str, Any], where: dict[str, Any]
) -> None:
    assert "anchor" in resolve_roles(found, mapped, where)


def test_a_column_that_is_mapped_to_a_role_does_not_play_its_own_besides() -> None:
    """Or labels of -1 and 1 that are to be scores would be dropped as unlabelled."""
    found = ["sentence1", "sentence2", "label"]
    roles = resolve_roles(found, {"score": "label"}, {})
    assert roles == {"sentence1": ("sentence1",), "sentence2": ("sentence2",), "score": ("label",)}
