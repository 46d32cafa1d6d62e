"""Batches cover the rows they should, in an order that depends on seed and epoch alone."""

import pickle
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pytest

from sbert_train.data.mixing import Mix, MixedBatches
from sbert_train.data.rows import MixedRows, SetRows, text_keys
from sbert_train.data.vectors import RowVectors


def batches(sizes: list[int], batch_size: int, **options: object) -> MixedBatches:
    settings = {"mix": Mix(), "seed": 7, **options}
    return MixedBatches(sizes, batch_size, **settings)  # type: ignore[arg-type]


def owner(rows: list[int], sizes: list[int]) -> set[int]:
    return set(np.searchsorted(np.cumsum(sizes), rows, side="right").tolist())


def test_proportional_sees_every_row_once_and_each_batch_holds_one_set() -> None:
    sizes = [50, 20, 3]
    found = list(batches(sizes, 8))
    assert sorted(row for batch in found for row in batch) == list(range(73))
    assert all(len(owner(batch, sizes)) == 1 for batch in found)
    assert {next(iter(owner(batch, sizes))) for batch in found[:5]} != {0}, (
        "the sets are mixed, not one by one"
    )


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("strategy", ["proportional", "round_robin", "weighted"])
@pytest.mark.parametrize("draws", [1, 2])
def test_the_length_is_the_number_of_batches_in_every_epoch(
    strategy: str, draws: int, drop_last: bool
) -> None:
    sampler = batches([50, 20], 8, mix=Mix(strategy, draws, (1.0, 2.0)), drop_last=drop_last)  # type: ignore[arg-type]
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert len(list(sampler)) == len(sampler)


def test_round_robin_takes_the_sets_in_turn_until_the_smallest_is_used_up() -> None:
    sizes = [40, 16]
    assert [owner(batch, sizes) for batch in batches(sizes, 8, mix=Mix("round_robin"))] == [
        {0},
        {1},
        {0},
        {1},
    ]


def test_weighted_draws_by_weight_and_begins_a_small_set_anew() -> None:
    sizes = [400, 400]
    found = list(batches(sizes, 4, mix=Mix("weighted", 1, (1.0, 3.0))))
    share = sum(owner(batch, sizes) == {1} for batch in found) / len(found)
    assert len(found) == 200
    assert share == pytest.approx(0.75, abs=0.1)
    assert max(Counter(row for batch in found for row in batch if row >= 400).values()) == 2


def test_a_batch_can_join_several_sets() -> None:
    sizes = [64, 64]
    found = list(batches(sizes, 8, mix=Mix("round_robin", 2)))
    assert all(owner(batch, sizes) == {0, 1} and len(batch) == 8 for batch in found)


@pytest.mark.parametrize("strategy", ["proportional", "weighted"])
def test_the_parts_of_a_batch_come_from_different_sets_while_there_are_others(strategy: str) -> None:
    sizes = [40, 80, 56]
    sampler = batches(sizes, 8, mix=Mix(strategy, 2, (1.0, 2.0, 1.0)), drop_last=True)  # type: ignore[arg-type]
    found = list(sampler)
    assert len(found) == 22  # 10 + 20 + 14 draws of 4 rows
    assert all(len(owner(batch, sizes)) == 2 for batch in found)
    if strategy == "proportional":
        assert sorted(row for batch in found for row in batch) == list(range(176))


def test_a_small_set_meets_a_large_one_throughout_the_epoch() -> None:
    sizes = [64, 640]
    found = [owner(batch, sizes) for batch in batches(sizes, 32, mix=Mix("proportional", 2))]
    joined = [i for i, sets in enumerate(found) if sets == {0, 1}]
    assert len(found) == 22 and len(joined) == 4  # as many as the small set has draws
    assert max(joined) >= 11, "not all at the beginning"


def test_a_row_is_never_alone_in_a_batch() -> None:
    assert [len(batch) for batch in batches([33], 8)] == [8, 8, 8, 9]
    assert [len(batch) for batch in batches([34], 8)] == [8, 8, 8, 8, 2]
    assert [len(batch) for batch in batches([1], 8)] == [1]  # but there is no other


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, same, other = batches([50, 20], 8), batches([50, 20], 8), batches([50, 20], 8, seed=8)
    first = list(one)
    one.set_epoch(1)
    second = list(one)
    one.set_epoch(0)
    assert list(one) == first == list(same)
    assert second != first and list(other) != first


@pytest.mark.parametrize("strategy", ["proportional", "round_robin", "weighted"])
def test_sets_that_fill_no_batch_give_none(strategy: str) -> None:
    sampler = batches([3, 2], 8, mix=Mix(strategy, 1, (1.0, 2.0)), drop_last=True)  # type: ignore[arg-type]
    assert len(sampler) == 0 and list(sampler) == []


def test_drop_last_leaves_out_what_does_not_fill_a_batch() -> None:
    assert {len(batch) for batch in batches([50, 21], 8, drop_last=True)} == {8}


def test_no_text_occurs_in_two_rows_of_a_batch_but_for_what_is_left_in_the_last() -> None:
    keys = np.random.default_rng(0).integers(0, 200, size=(300, 2))

    def repeats(batch: list[int]) -> bool:
        return max(Counter(key for row in batch for key in set(keys[row].tolist())).values()) > 1

    assert sum(repeats(batch) for batch in batches([300], 10)) > 5, (
        "the premise: without care texts do repeat"
    )
    careful = list(batches([300], 10, text_keys=[keys]))
    assert sum(repeats(batch) for batch in careful) <= 1
    assert sorted(row for batch in careful for row in batch) == list(range(300))


def test_rows_that_all_share_a_text_are_still_placed_once_each() -> None:
    keys = np.zeros((1_000, 1), dtype=np.int64)
    found = list(batches([1_000], 10, text_keys=[keys]))
    assert sorted(row for batch in found for row in batch) == list(range(1_000))
    assert len(found) == 100


@pytest.fixture
def tokenised() -> datasets.Dataset:
    ids = datasets.List(datasets.Value("int32"))
    features = datasets.Features(
        {"anchor": ids, "negative": datasets.List(ids), "score": datasets.Value("float64")}
    )
    rows = [{"anchor": [2, i, 3], "negative": [[2, 3], [2, i + 1, i, 3]], "score": i / 10} for i in range(9)]
    return datasets.Dataset.from_list(rows, features=features)


def test_rows_are_read_from_the_right_set_in_the_order_asked(tokenised: datasets.Dataset) -> None:
    rows = MixedRows([SetRows(tokenised), SetRows(tokenised.select([5, 6]), objective=1)])
    assert len(rows) == 11
    found = rows.__getitems__([10, 0, 9])
    assert [ids.tolist() for ids in found.tokens["anchor"]] == [[2, 6, 3], [2, 0, 3], [2, 5, 3]]
    assert [ids.tolist() for ids in found.tokens["negative"][:2]] == [[2, 3], [2, 7, 6, 3]]
    assert found.shape_of("anchor") == (3,) and found.shape_of("negative") == (3, 2)
    assert found.labels is not None and found.labels.tolist() == np.array([0.6, 0, 0.5], np.float32).tolist()
    assert [rows[place].objective for place in (10, 0, 9)] == [1, 0, 1]
    assert found.objective == 1, "that of the first row; sets that share batches have the same"
    assert found.tokens["anchor"][0].dtype == np.int32


def test_texts_are_views_of_the_mapped_file_whatever_pieces_it_is_in(tmp_path: Path) -> None:
    ids = datasets.List(datasets.Value("int32"))
    features = datasets.Features({"anchor": ids, "negative": datasets.List(ids)})
    texts = [{"anchor": [2, *range(i % 4), 3], "negative": [[i], [i, i + 1]]} for i in range(25)]
    texts[9]["anchor"] = texts[24]["anchor"] = []
    written = datasets.Dataset.from_list(texts, features=features)
    written.save_to_disk(tmp_path / "a")
    mapped = datasets.load_from_disk(str(tmp_path / "a")).map(
        None, batched=True, batch_size=10, writer_batch_size=10, cache_file_name=str(tmp_path / "b.arrow")
    )
    both = datasets.concatenate_datasets([mapped, written])
    assert both.data.column("anchor").num_chunks > 2, "the premise"
    order = np.random.default_rng(0).permutation(50).tolist()
    shuffled = both.select(order)
    for rows, places in ((both, range(50)), (shuffled, order)):
        read = MixedRows([SetRows(rows)]).__getitems__(range(50))
        assert [one.tolist() for one in read.tokens["anchor"]] == [texts[i % 25]["anchor"] for i in places]
        negatives = [one.tolist() for one in read.tokens["negative"]]
        assert [negatives[i : i + 2] for i in range(0, 100, 2)] == [texts[i % 25]["negative"] for i in places]
    read = MixedRows([SetRows(mapped)]).__getitems__([3, 13])
    assert not any(one.flags.owndata or one.flags.writeable for one in read.tokens["anchor"])


def test_rows_reach_a_worker_as_the_paths_of_their_files(tmp_path: Path) -> None:
    texts = {"anchor": [[2] * 50] * 1_000}
    features = datasets.Features({"anchor": datasets.List(datasets.Value("int32"))})
    datasets.Dataset.from_dict(texts, features=features).save_to_disk(tmp_path)
    sent = pickle.dumps(MixedRows([SetRows(datasets.load_from_disk(str(tmp_path)))]))
    assert len(sent) < 10_000
    assert pickle.loads(sent)[7].tokens["anchor"][0].tolist() == [2] * 50


def test_a_pooled_set_gives_vectors_in_place_of_tokens_and_a_reference_gives_them_beside(
    tokenised: datasets.Dataset,
) -> None:
    table = np.arange(40, dtype=np.float32).reshape(20, 2)
    places = {"anchor": np.arange(9), "negative": np.arange(18).reshape(9, 2)}
    vectors = RowVectors(table, places, {role: where + 100 for role, where in places.items()})
    read = MixedRows([SetRows(tokenised, pooled=vectors)])[3]
    assert set(read.pooled) == {"anchor", "negative"} and not read.tokens and read.labels is not None
    anchor, negative = read.pooled["anchor"], read.pooled["negative"]
    assert (anchor.keys.tolist(), anchor.vectors.tolist()) == ([103], [[6, 7]])
    assert negative.keys.tolist() == [[106, 107]] and negative.vectors.shape == (1, 2, 2)
    beside = MixedRows([SetRows(tokenised, reference=vectors)]).__getitems__([3, 4])
    assert beside.tokens["anchor"][0].tolist() == [2, 3, 3]
    assert {role: one.tolist() for role, one in beside.reference.items()} == {
        "anchor": [[6, 7], [8, 9]],
        "negative": [[[12, 13], [14, 15]], [[16, 17], [18, 19]]],
    }
    two = MixedRows([SetRows(tokenised, pooled=vectors)] * 2).__getitems__([3, 12])
    assert two.pooled["anchor"].keys.tolist() == [103, 103] and two.pooled["negative"].keys.shape == (2, 2)
    assert MixedRows([SetRows(tokenised, pooled=vectors), SetRows(tokenised)]).pooled_texts == 20


def test_rows_of_a_label_come_two_by_two_and_each_once() -> None:
    labels = np.array([0] * 7 + [1] * 4 + [2] * 1 + [3] * 2)
    found = list(batches([14], 4, labels=[labels]))
    assert sorted(row for batch in found for row in batch) == list(range(14))
    pairs = [tuple(labels[batch[i : i + 2]]) for batch in found[:3] for i in (0, 2)]
    assert len(pairs) == 6 and all(one == other for one, other in pairs)
    assert sorted(labels[found[3]]) == [0, 2], "those that find no partner are the last"
    assert found != list(batches([14], 4, labels=[labels], seed=2)), "the order is that of the seed"
    frequent_first = [pair[0] for pair in pairs]
    assert frequent_first != sorted(frequent_first)


def test_text_keys_are_equal_for_equal_texts_only(tokenised: datasets.Dataset) -> None:
    keys = text_keys(tokenised)
    assert keys.shape == (9, 3)
    assert len(set(keys[:, 1].tolist())) == 1, "the first negative is the same text in each row"
    assert len(set(keys[:, [0, 2]].ravel().tolist())) == 18
