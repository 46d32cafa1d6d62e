"""Tokenised once: the ids are the tokenizer's own, and a second run, in this process or another, finds them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset, Features, List, Value
from transformers import PreTrainedTokenizerBase

from sbert_train.data import tokens
from sbert_train.data.sources import load_set
from sbert_train.data.text_ids import cut
from sbert_train.data.tokens import tokenise, useful_processes, very_long_texts
from tests.data.vocabularies import LetterTokenizer, bert, mpnet, roberta, xlm_roberta

TEXTS = ["the cat sat on the mat", "a dog ran", "cats", "the cat sat on the mat", "Zwölf 🐝 !", "dog " * 50]
IDS = List(Value("int32"))


def pairs(texts: list[str] = TEXTS) -> Dataset:
    return Dataset.from_dict({"anchor": texts, "positive": texts[::-1]})


@pytest.mark.parametrize("make", [bert, mpnet, roberta, xlm_roberta, LetterTokenizer])
@pytest.mark.parametrize("max_length", [6, 64])
def test_the_ids_are_what_the_tokenizer_gives_each_text(
    make: Callable[[], PreTrainedTokenizerBase], max_length: int
) -> None:
    tokenised = tokenise(pairs(), make(), max_length=max_length)
    reference = make()
    expected = [reference(text, truncation=True, max_length=max_length)["input_ids"] for text in TEXTS]
    assert len(expected[-1]) == min(max_length, len(reference(TEXTS[-1])["input_ids"]))
    assert tokenised["anchor"][:] == expected
    assert tokenised["positive"][:] == expected[::-1]
    assert tokenised.features == Features({"anchor": IDS, "positive": IDS})


def test_negatives_stay_lists_per_row_and_scores_and_labels_pass_through() -> None:
    columns: dict[str, list[Any]] = {
        "anchor": ["the cat", "a dog", "the mat"],
        "negative": [["a dog", "ran"], ["the cat", "sat"], ["a dog", "on"]],
        "score": [0.0, 0.5, 1.0],
        "label": [2, 0, 1],
    }
    tokenizer = bert()
    tokenised = tokenise(Dataset.from_dict(columns).select([2, 0]), tokenizer, max_length=16)
    expected = [[tokenizer(text)["input_ids"] for text in columns["negative"][row]] for row in (2, 0)]
    assert tokenised["negative"][:] == expected
    assert tokenised["score"][:] == [1.0, 0.0]
    assert tokenised["label"][:] == [1, 2]
    assert tokenised.features["negative"] == List(IDS)
    assert tokenised[0]["negative"] == expected[0], "the result is plain Python, not Arrow"


def test_a_prompt_stands_before_the_texts_of_its_role_only() -> None:
    tokenizer = bert()
    tokenised = tokenise(pairs(["the cat"]), tokenizer, max_length=16, prompts={"anchor": "query: "})
    assert tokenised["anchor"][0] == tokenizer("query: the cat")["input_ids"]
    assert tokenised["positive"][0] == tokenizer("the cat")["input_ids"] != tokenised["anchor"][0]


@pytest.mark.parametrize("parallelism", [None, "true"])
def test_several_processes_give_the_same_rows_in_order_and_leave_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch, parallelism: str | None
) -> None:
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    if parallelism is not None:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", parallelism)
    environment, before = os.environ, dict(os.environ)
    texts = [f"the cat {'sat ' * (number % 7)}" for number in range(30)]
    several = tokenise(pairs(texts), bert(), max_length=16, num_proc=2)
    assert several.to_dict() == tokenise(pairs(texts), bert(), max_length=16, num_proc=1).to_dict()
    assert os.environ is environment
    assert dict(os.environ) == before


def test_as_many_processes_as_rows_and_cores_are_good_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [useful_processes(rows) for rows in (1, 9_999, 10_000, 10**7)] == [1, 1, 2, 8]


@pytest.fixture
def rows(tmp_path: Path) -> Dataset:
    """Rows that lie in a cache, as `load_set` gives them."""
    path = tmp_path / "pairs.csv"
    path.write_text("anchor,positive\nthe cat,a cat\na dog,the dog\n")
    return load_set("pairs", str(path), cache_dir=tmp_path / "cache").rows


def test_a_second_call_does_not_tokenise(rows: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = bert()
    first = tokenise(rows, tokenizer, max_length=16)
    tokenizer(["the cat", "a dog ran"], truncation=True, max_length=3, padding=True)
    assert tokenizer.backend_tokenizer.padding is not None, "the use left its mark on the tokenizer"
    monkeypatch.setattr(tokens, "tokenise_table", lambda *_, **__: pytest.fail("tokenised again"))
    for same in (tokenizer, bert()):
        second = tokenise(rows, same, max_length=16)
        assert second.to_dict() == first.to_dict()
        assert second._fingerprint == first._fingerprint


def test_a_second_run_in_another_process_does_not_tokenise(rows: Dataset, tmp_path: Path) -> None:
    tokenizer = bert()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    first = tokenise(rows, tokenizer, max_length=16, num_proc=2)
    code = """
import sys
from pathlib import Path
from transformers import AutoTokenizer
from sbert_train.data import tokens
from sbert_train.data.sources import load_set

tokens.tokenise_table = lambda *_, **__: sys.exit("tokenised again")
folder = Path(sys.argv[1])
rows = load_set("pairs", str(folder / "pairs.csv"), cache_dir=folder / "cache").rows
print(tokens.tokenise(rows, AutoTokenizer.from_pretrained(folder / "tokenizer"), max_length=16).to_dict())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == str(first.to_dict()), done.stderr


def test_whatever_the_ids_depend_on_is_in_the_fingerprint(rows: Dataset) -> None:
    other_special_tokens = bert()
    other_special_tokens.split_special_tokens = True
    cut_on_the_left = bert()
    cut_on_the_left.truncation_side = "left"
    variants: list[tuple[Dataset, PreTrainedTokenizerBase, dict[str, Any]]] = [
        (rows, bert(), {}),
        (rows, bert(), {"max_length": 8}),
        (rows, bert(), {"prompts": {"anchor": "query: "}}),
        (rows, bert(), {"prompts": {"positive": "query: "}}),
        (rows, bert("bird"), {}),
        (rows, mpnet(), {}),
        (rows, LetterTokenizer(), {}),
        (rows, other_special_tokens, {}),
        (rows, cut_on_the_left, {}),
        (rows.select([1]), bert(), {}),
    ]
    prints = [
        tokenise(some, by, **{"max_length": 16, **options})._fingerprint for some, by, options in variants
    ]
    assert len(set(prints)) == len(variants)


def test_a_prompt_for_a_role_that_is_not_there_changes_nothing(rows: Dataset) -> None:
    prompts = {"sentence1": "query: "}
    with_prompt = tokenise(rows, bert(), max_length=16, prompts=prompts)
    assert with_prompt._fingerprint == tokenise(rows, bert(), max_length=16)._fingerprint


def test_texts_that_are_cut_before_they_are_tokenised_are_counted() -> None:
    long, longest = "cat " * 250, "cat " * 251
    columns: dict[str, list[Any]] = {
        "anchor": ["cat", long, longest],
        "negative": [["a", longest], [long, long], [longest, longest]],
    }
    rows = Dataset.from_dict(columns).select([2, 1, 0])

    def count(*roles: str, length: int | None = 16, **prompts: str) -> int:
        return very_long_texts(rows, roles, length, prompts)

    assert (count("anchor"), count("negative"), count("anchor", "negative")) == (1, 3, 4)
    assert count("anchor", anchor="q: ") == 2, "a prompt is a part of the text"
    assert count("anchor", "negative", length=None) == count("anchor", length=64) == 0
    texts: list[str] = [*columns["anchor"]]
    assert [text != part for text, part in zip(texts, cut(texts, bert(), 16), strict=True)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(("shown_from", "is_shown"), [(1, True), (100, False)])
def test_only_big_sets_show_progress(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], shown_from: int, is_shown: bool
) -> None:
    monkeypatch.setattr(tokens, "ROWS_WITH_PROGRESS", shown_from)
    tokenise(pairs(), bert(), max_length=8)
    assert ("Tokenising" in capfd.readouterr().err) is is_shown
    assert not datasets.are_progress_bars_disabled()
