"""Lengths are those that the tokenizer would give if it cut nothing."""

import numpy as np

from sbert_train.data.examination.lengths import measure_lengths
from tests.data.examination.sets import rows_of
from tests.tiny import make_tokenizer


def test_percentiles_and_the_share_that_is_cut_are_those_of_all_texts_with_their_prompt() -> None:
    words = list(range(1, 41))
    rows = rows_of(anchor=["cat " * count for count in words], positive=["dog"] * 40)
    found = measure_lengths(
        rows, ["anchor", "positive"], make_tokenizer(), max_length=30, prompts={"anchor": "the small "}
    )
    tokens = np.array(words) + 2 + 2  # the prompt, [CLS] and [SEP]
    one = found["anchor"]
    assert (one.half, one.most, one.nearly_all, one.longest) == (25, 43, 44, 44)
    assert one.truncated == (tokens > 30).mean() == 14 / 40
    assert (one.texts, one.is_all, one.cut_off) == (40, True, 0.0)
    assert found["positive"].longest == 3 and found["positive"].truncated == 0.0


def test_every_negative_of_a_row_is_a_text() -> None:
    rows = rows_of(anchor=["cat"] * 2, negative=[["cat dog", "cat"], ["cat dog fish", "cat"]])
    found = measure_lengths(rows, ["negative"], make_tokenizer(), max_length=None, prompts={})
    assert (found["negative"].texts, found["negative"].longest, found["negative"].truncated) == (4, 5, 0.0)


def test_of_many_rows_a_sample_from_the_first_to_the_last_is_read() -> None:
    rows = rows_of(anchor=["cat dog"] + ["cat"] * 98 + ["cat dog fish"])
    found = measure_lengths(rows, ["anchor"], make_tokenizer(), max_length=4, prompts={}, sampled=10)[
        "anchor"
    ]
    assert (found.texts, found.is_all, found.longest, found.truncated) == (10, False, 5, 0.1)


def test_of_a_very_long_text_a_part_is_counted() -> None:
    rows = rows_of(anchor=["cat " * 100_000])
    found = measure_lengths(rows, ["anchor"], make_tokenizer(), max_length=16, prompts={})["anchor"]
    assert 1_000 < found.longest < 10_000 and found.truncated == 1.0 and found.cut_off == 1.0
