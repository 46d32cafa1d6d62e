"""Tokenizers of every kind, built in memory: WordPiece, byte-level BPE, Unigram, and one without a Rust backend."""

from typing import Any

from tokenizers import pre_tokenizers
from transformers import (
    BertTokenizer,
    MPNetTokenizer,
    PreTrainedTokenizer,
    PreTrainedTokenizerBase,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "query", ":"]


class LetterTokenizer(PreTrainedTokenizer):
    """A tokenizer without a Rust backend, such as some of the languages without spaces have: one token per letter."""

    def __init__(self, **options: Any) -> None:
        self.letters = {
            letter: place for place, letter in enumerate(["[UNK]", *"abcdefghijklmnopqrstuvwxyz "])
        }
        super().__init__(unk_token="[UNK]", **options)  # type: ignore[no-untyped-call]

    @property
    def vocab_size(self) -> int:
        return len(self.letters)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.letters)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return list(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self.letters.get(token, 0)


def numbered(*pieces: str) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(pieces)}


def bert(*more: str) -> PreTrainedTokenizerBase:
    return BertTokenizer(vocab=numbered("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", *more))


def mpnet() -> PreTrainedTokenizerBase:
    return MPNetTokenizer(vocab=numbered("<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>", *WORDS))


def roberta() -> PreTrainedTokenizerBase:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = numbered("<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters, "at", "cat")
    merges: list[Any] = [("a", "t"), ("c", "at")]
    return RobertaTokenizer(vocab=vocabulary, merges=merges)


def xlm_roberta() -> PreTrainedTokenizerBase:
    special: list[Any] = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = [
        *((f"▁{word}", -2.0) for word in WORDS),
        *((letter, -5.0) for letter in "abcdefghijklmnopqrstuvwxyz▁"),
    ]
    return XLMRobertaTokenizer(vocab=special + pieces)
