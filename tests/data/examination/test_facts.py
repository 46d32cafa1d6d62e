"""All facts of a set in one value, of the roles that are used."""

import json

from sbert_train.data.examination.facts import SetFacts, examine, with_overlaps
from sbert_train.data.examination.targets import LabelCount
from sbert_train.data.examination.text_keys import TextKeys
from sbert_train.data.sources import LoadedSet
from tests.data.examination.sets import loaded
from tests.tiny import make_tokenizer


def facts_of(one: LoadedSet, *roles: str) -> tuple[SetFacts, TextKeys]:
    return examine(
        one,
        "data.train.0",
        roles,
        make_tokenizer(),
        pushes_apart=True,
        max_length=8,
        prompts={},
        score_range=(0, 5),
        labels=["no", "yes"],
    )


def test_a_set_is_seen_through_the_roles_that_are_used() -> None:
    one = loaded(
        anchor=["who?", "a cat", "a cat"],
        positive=["a dog", "the cat", "the cat"],
        negative=[["a dog"], ["a mat"], ["a tree"]],
        label=[1, 0, 1],
    )
    facts, keys = facts_of(one, "anchor", "positive")
    assert set(keys.near) == set(facts.lengths) == {"anchor", "positive"}
    assert facts.false_negatives is None and facts.labels == () and facts.scores is None
    assert facts.repeats.rows == 1 and facts.repeats.contradicting == 0
    assert facts.questions == {"anchor": 1 / 3, "positive": 0.0}
    every, _ = facts_of(one, *one.rows.column_names)
    assert every.false_negatives is not None and every.false_negatives.equal_positive == 1
    assert every.labels == (LabelCount(0, "no", 1), LabelCount(1, "yes", 2))


def test_three_rows_stand_for_a_set_and_long_texts_are_cut() -> None:
    one = loaded(
        sentence1=[f"{number} " * 200 for number in range(9)], sentence2=["a"] * 9, score=[0.5] * 8 + [1.0]
    )
    facts, _ = facts_of(one, "sentence1", "sentence2", "score")
    assert [sample["row"] for sample in facts.samples] == [1, 5, 9]
    assert facts.samples[2]["score"] == 1.0
    text = facts.samples[2]["sentence1"]
    assert text.startswith("8 8") and text.endswith("…") and len(text) == 200


def test_a_set_of_one_row_is_shown_once() -> None:
    facts, _ = facts_of(
        loaded(sentence1=["a"], sentence2=["b"], score=[0.5]), "sentence1", "sentence2", "score"
    )
    assert [sample["row"] for sample in facts.samples] == [1]


def test_facts_are_plain_values_for_json() -> None:
    trained, keys = facts_of(
        loaded(anchor=["a"], positive=["b"], negative=[["c"]]), "anchor", "positive", "negative"
    )
    one, own = facts_of(
        loaded("dev", sentence1=["a"], sentence2=["b"], score=[0.5]), "sentence1", "sentence2", "score"
    )
    plain = json.loads(json.dumps(with_overlaps(one, own, {"pairs": keys}).to_json()))
    assert plain["set"] == "dev" and plain["overlaps"] == [
        {"train": "pairs", "rows": 1, "seen_rows": 1, "texts": 2, "seen_texts": 2}
    ]
    assert plain["scores"]["highest"] == 2.5 and plain["lengths"]["sentence1"]["half"] == 3
    assert json.loads(json.dumps(trained.to_json()))["false_negatives"]["rows"] == 1


def test_of_many_labels_the_most_frequent_are_kept_and_the_others_counted() -> None:
    labels = [7] * 3 + list(range(100, 130)) + [5] * 2
    facts, _ = facts_of(loaded(sentence1=list(map(str, labels)), label=labels), "sentence1", "label")
    assert [one.label for one in facts.labels] == [5, 7, *range(100, 118)] and facts.more_labels == 12


def test_where_nothing_is_pushed_apart_there_are_no_false_negatives() -> None:
    one = loaded(anchor=["a"], positive=["b"], negative=[["b"]])
    facts, _ = examine(
        one, "data.train.0", one.rows.column_names, make_tokenizer(), pushes_apart=False, max_length=8, prompts={},
        score_range=None, labels=None,
    )  # fmt: skip
    assert facts.false_negatives is None
