"""Very long texts are cut before they are tokenised, and their ids are those of the whole texts."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import AddedToken, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from sbert_train.data import text_ids
from sbert_train.data.literal import read_literally
from sbert_train.data.text_ids import cut, longest_read, token_ids
from sbert_train.model.encoder import SentenceEncoder
from tests.data.vocabularies import LetterTokenizer, bert, mpnet, roberta, xlm_roberta
from tests.tiny import make_encoder, make_tokenizer

Make = Callable[[], PreTrainedTokenizerBase]
MAKERS: list[Make] = [bert, mpnet, roberta, xlm_roberta, make_tokenizer]

WORDS = ["the", "cat", "cats", "dog's", "a", "12", "3.14", "Zwölf", "猫", "x" * 30, "multi word token"]
SPACES = [" ", "  ", "\n", "\t\n ", "\u3000", "\x00"]
SURPRISES = [",", "。", "o\u0308", "\u0301", "🐝", "<s>", "[SEP]", "</", "ǆ", "İ", "ﬁ", "Σ"]
pieces = st.sampled_from([*WORDS, *SPACES, *SURPRISES])
plain = st.sampled_from(["the ", "cat ", "sat, ", "on a mat. "])
long_texts = st.lists(plain | pieces, min_size=20, max_size=100).map("".join)


def whole(texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int) -> Any:
    return tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("make", MAKERS)
def test_the_ids_are_those_of_the_whole_text(make: Make, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_ids, "LEAST_CHARACTERS", 4)
    monkeypatch.setattr(text_ids, "CHARACTERS_PER_TOKEN", 1)
    tokenizer = make()
    read_literally(tokenizer)
    tokenizer.add_tokens([AddedToken("multi word token", normalized=False)])
    tokenizer.truncation_side = side
    cuts = 0

    @settings(max_examples=100, deadline=None)
    @given(texts=st.lists(long_texts, min_size=1, max_size=4), max_length=st.integers(2, 12))
    def check(texts: list[str], max_length: int) -> None:
        nonlocal cuts
        cuts += cut(texts, tokenizer, max_length) != texts
        assert token_ids(texts, tokenizer, max_length) == whole(texts, tokenizer, max_length)

    check()
    assert cuts > 10, "many of the texts were cut"


class Counted:
    """The characters that a tokenizer was given since."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch) -> None:
        self.characters = 0
        call = type(tokenizer).__call__

        def counting(one: Any, texts: list[str], **options: Any) -> Any:
            self.characters += sum(map(len, texts))
            return call(one, texts, **options)

        monkeypatch.setattr(type(tokenizer), "__call__", counting)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("make", MAKERS)
def test_of_a_very_long_text_only_a_part_is_read(
    make: Make, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = make()
    tokenizer.truncation_side = side
    text = "the cat sat on a mat, " * 10_000
    expected = whole([text], tokenizer, 32)
    counted = Counted(tokenizer, monkeypatch)
    assert token_ids([text, "the cat"], tokenizer, 32)[:1] == expected
    assert counted.characters < 2 * 1_100


def test_a_text_that_takes_more_characters_for_its_tokens_is_read_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = bert()
    text = ("x" * 90 + " ") * 1_000
    expected = whole([text], tokenizer, 64)
    counted = Counted(tokenizer, monkeypatch)
    assert token_ids([text], tokenizer, 64) == expected
    assert 64 * 90 < counted.characters < 64 * 90 * 6 < len(text)


@pytest.mark.parametrize("make", [bert, roberta, xlm_roberta])
def test_a_text_of_one_word_is_read_whole_and_at_most_thrice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = make()
    text = "a" * 50_000
    expected = whole([text], tokenizer, 8)
    counted = Counted(tokenizer, monkeypatch)
    assert token_ids([text], tokenizer, 8) == expected
    assert counted.characters <= 3 * len(text)


def test_text_without_spaces_is_cut_at_its_punctuation(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = roberta()
    text = "猫が好きです。" * 5_000
    expected = whole([text], tokenizer, 16)
    counted = Counted(tokenizer, monkeypatch)
    assert token_ids([text], tokenizer, 16) == expected
    assert counted.characters < 3_000


def test_nothing_is_cut_without_a_limit_of_length_or_without_words() -> None:
    text = "the cat sat " * 1_000
    assert cut([text], bert(), None) == [text]
    assert longest_read(None) is None
    assert cut([text], LetterTokenizer(), 8) == [text]
    assert token_ids([text], LetterTokenizer(), 8) == whole([text], LetterTokenizer(), 8)


def test_what_is_read_at_most_grows_with_the_tokens_that_are_kept() -> None:
    assert [longest_read(length) for length in (1, 62, 63, 512)] == [1_000, 1_000, 1_008, 8_192]
    short = "cat " * 250
    assert cut([short], bert(), 8) == [short] != cut([short + "cat"], bert(), 8)


def test_the_encoder_reads_no_more_and_embeds_the_same(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    long, kept = "the cat sat near a dog " * 5_000, "the cat sat near a dog " * 20
    counted = Counted(encoder.tokenizer, monkeypatch)
    found = encoder.encode([long])
    assert counted.characters < 3_000
    assert (found == make_encoder().encode([kept])).all()


def by_pieces(pieces: Sequence[str], side: str) -> PreTrainedTokenizerFast:
    """A tokenizer whose words end at white space only, and which has an added token of ten words."""
    vocabulary = {piece: number for number, piece in enumerate(["[UNK]", "[PAD]", *pieces])}
    backend = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=200))
    backend.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", truncation_side=side
    )
    tokenizer.add_tokens(["a b c d e f g h i j"])
    return tokenizer


@pytest.mark.parametrize("side", ["right", "left"])
def test_an_added_token_that_is_cut_is_read_whole(side: str) -> None:
    long = "w" * 20
    tokenizer = by_pieces([long, *"abcdefghij"], side)
    words = [*[long] * 47, "a b c d e f g h i j", *[long] * 47]
    text = " ".join(words)
    expected = whole([text], tokenizer, 50)
    assert tokenizer.get_added_vocab()["a b c d e f g h i j"] in expected[0]
    assert cut([text], tokenizer, 50) == [text], "a thousand characters hold 47 words and a part of the token"
    assert token_ids([text], tokenizer, 50) == expected


def test_a_word_that_is_cut_is_read_whole() -> None:
    first, second = "x" * 30, "y" * 30
    tokenizer = by_pieces(["w" * 20, first, f"##{second}", f"{first}{second}-z"], "right")
    text = " ".join([*["w" * 20] * 45, f"{first}{second}-z", *["w" * 20] * 45])
    expected = whole([text], tokenizer, 46)
    assert expected[0][-1] == tokenizer.get_vocab()[f"{first}{second}-z"]
    assert tokenizer(text[:1005])["input_ids"][45] == tokenizer.get_vocab()[first], (
        "as it would be read in a part"
    )
    assert token_ids([text], tokenizer, 46) == expected
