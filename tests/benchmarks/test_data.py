"""The rows that both sides train on are those that the experiments say, named by role."""

import os
from pathlib import Path

import pytest

from benchmarks import data
from benchmarks.quality.experiments import EXPERIMENTS


def test_scores_are_between_0_and_1_and_texts_stay_texts(folder: Path) -> None:
    assert data.stsb_train(folder) == [
        {"sentence1": "a cat sat", "sentence2": "the cat, a cat, sat", "score": 1.0},
        {"sentence1": "a cat sat", "sentence2": "001", "score": 0.1},
        {"sentence1": "a dog ran", "sentence2": "None", "score": 0.0},
    ]


def test_pairs_are_the_entailments_of_dev_then_test(folder: Path) -> None:
    assert data.snli_pairs(folder) == [
        {"anchor": "a cat sat", "positive": "a cat"},
        {"anchor": "a cat sat", "positive": "the cat sat"},
        {"anchor": "a man saw a dog", "positive": "a man saw"},
    ]


def test_triplets_pair_the_nth_entailment_of_a_premise_with_its_nth_contradiction(folder: Path) -> None:
    # The first premise has two entailments in dev, and three contradictions over both files.
    assert data.snli_triplets(folder) == [
        {"anchor": "a cat sat", "positive": "a cat", "negative": "a dog ran"},
        {"anchor": "a cat sat", "positive": "the cat sat", "negative": "the cat slept"},
        {"anchor": "a man saw a dog", "positive": "a man saw", "negative": "a dog saw a man"},
    ]


def test_softmax_trains_on_dev_only(folder: Path) -> None:
    rows = data.snli_dev_labelled(folder)
    assert len(rows) == 5
    assert rows[0] == {"sentence1": "a cat sat", "sentence2": "the cat sat on a mat", "label": data.NEUTRAL}
    assert {row["label"] for row in rows} == {data.ENTAILMENT, data.NEUTRAL, data.CONTRADICTION}


def test_questions_train_with_their_answers_only(folder: Path) -> None:
    assert [row["positive"] for row in data.trecqa_pairs(folder)] == [
        "the man saw the dog .",
        "the train is in the city .",
        "the apple is red .",
    ]


def test_questions_that_no_ranking_can_fail_or_pass_are_left_out(folder: Path) -> None:
    candidates = data.trecqa_candidates(folder, "test")
    assert {question: [label for _, label in answers] for question, answers in candidates.items()} == {
        "who saw the dog ?": [1, 0],
        "where is the train ?": [0, 1, 0],
    }


def test_columns_stand_in_the_order_in_which_the_peer_takes_them(folder: Path) -> None:
    wanted = (
        ["sentence1", "sentence2", "score"],
        ["sentence1", "sentence2", "label"],
        ["anchor", "positive"],
        ["anchor", "positive", "negative"],
    )
    for experiment in EXPERIMENTS.values():
        rows = experiment.rows(folder)
        assert rows and all(list(row) in wanted for row in rows)


def test_rows_come_back_from_a_file_as_they_went_in(folder: Path, tmp_path: Path) -> None:
    rows = [
        *data.stsb_train(folder),
        {"sentence1": "a\nline and a tab\t", "sentence2": "Löwe", "score": 1 / 3},
    ]
    data.write_jsonl(tmp_path / "rows.jsonl", rows)
    assert data.read_jsonl(tmp_path / "rows.jsonl") == rows


@pytest.mark.realdata
@pytest.mark.skipif("SBERT_TRAIN_DATA" not in os.environ, reason="SBERT_TRAIN_DATA names no folder of data")
def test_experiments_have_as_many_rows_as_they_say() -> None:
    folder = Path(os.environ["SBERT_TRAIN_DATA"])
    for experiment in EXPERIMENTS.values():
        assert f"{len(experiment.rows(folder)):,} " in experiment.about
