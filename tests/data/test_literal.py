"""What a user writes is text, also where it reads as a special token."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from tokenizers.models import WordPiece
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from sbert_train.data.literal import read_literally
from sbert_train.model.encoder import SentenceEncoder
from tests.data.vocabularies import LetterTokenizer, bert, mpnet, numbered, roberta, xlm_roberta
from tests.tiny import SPECIAL, WORDS, make_backbone, make_tokenizer

Make = Callable[[], PreTrainedTokenizerBase]
ALL: list[Make] = [bert, mpnet, roberta, xlm_roberta, make_tokenizer, LetterTokenizer]


def literal(make: Make) -> PreTrainedTokenizerBase:
    tokenizer = make()
    read_literally(tokenizer)
    return tokenizer


def bracketed() -> BertTokenizer:
    """A WordPiece tokenizer that knows the characters of the names of its special tokens."""
    return BertTokenizer(
        vocab=numbered(*SPECIAL.values(), "[", "]", "sep", "cls", *WORDS), do_lower_case=True
    )


@pytest.mark.parametrize("make", ALL)
def test_the_names_of_special_tokens_in_a_text_are_not_those_tokens(make: Make) -> None:
    plain, tokenizer = make(), literal(make)
    known = {number for number in plain.all_special_ids if number != plain.unk_token_id}
    around = set(plain("")["input_ids"])
    text = " ".join(f"the {name} cat{name}{name}." for name in plain.all_special_tokens)
    assert known & set(plain(text, add_special_tokens=False)["input_ids"]) or not known, "it did read them so"
    assert not known & set(tokenizer(text, add_special_tokens=False)["input_ids"])
    ids = tokenizer(text)["input_ids"]
    assert around == {number for number in ids if number in known} and len(ids) > len(around), (
        "those around it stay"
    )


@pytest.mark.parametrize("make", ALL)
def test_a_text_without_such_names_has_the_ids_that_it_had(make: Make) -> None:
    texts = ["the cat sat", "a < s > dog", "<s", "[SEP", "", "cat</s", "Zwölf 🐝 [ SEP ]"]
    assert literal(make)(texts)["input_ids"] == make()(texts)["input_ids"]


def test_a_text_is_the_same_as_its_characters() -> None:
    tokenizer = literal(bracketed)
    ids = [
        tokenizer.convert_tokens_to_ids(piece) for piece in ("[CLS]", "the", "[", "sep", "]", "cat", "[SEP]")
    ]
    assert tokenizer("the [SEP] cat")["input_ids"] == ids
    sentences = literal(xlm_roberta)
    pieces = sentences.convert_ids_to_tokens(sentences("a</s>", add_special_tokens=False)["input_ids"])
    assert pieces == ["▁a", "<unk>", "<unk>", "s", "<unk>"]


def test_it_can_be_told_twice() -> None:
    tokenizer = literal(xlm_roberta)
    once = tokenizer.backend_tokenizer.to_str()
    read_literally(tokenizer)
    assert tokenizer.backend_tokenizer.to_str() == once


def test_a_saved_model_reads_texts_so_in_every_library(tmp_path: Path) -> None:
    tokenizer = bracketed()
    assert isinstance(tokenizer.backend_tokenizer.model, WordPiece)
    encoder = SentenceEncoder(make_backbone(), tokenizer, max_length=16, prompts={"query": "cls [SEP] "})
    encoder.save(tmp_path)
    texts = ["the [SEP] cat", "[CLS][CLS] dog [PAD]", "a fish"]
    ids = [one.tolist() for one in encoder.tokenize(texts)]
    assert [one.count(tokenizer.sep_token_id) for one in ids] == [1, 1, 1]
    assert AutoTokenizer.from_pretrained(tmp_path)(texts)["input_ids"] == ids
    assert [one.tolist() for one in SentenceEncoder.load(tmp_path).tokenize(texts)] == ids
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    found = theirs.encode(texts)
    assert abs(found - encoder.encode(texts)).max() < 1e-5
    assert abs(theirs.encode(texts, prompt_name="query") - encoder.encode(texts, role="anchor")).max() < 1e-5
    apart = SentenceEncoder(make_backbone(), bracketed(), max_length=16)
    apart.tokenizer.split_special_tokens = False
    assert abs(found - apart.encode(texts)).max(axis=1).tolist() > [1e-3, 1e-3, -1], "it makes a difference"


def test_a_vocabulary_whose_pieces_are_such_names_is_read_so_again_by_us_alone(tmp_path: Path) -> None:
    tokenizer = literal(xlm_roberta)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.split_special_tokens
    assert again("a <s>")["input_ids"] != tokenizer("a <s>")["input_ids"], "transformers builds it anew"
    read_literally(again)
    assert again("a <s>")["input_ids"] == tokenizer("a <s>")["input_ids"]
