"""Texts -> token ids, for training and encoding alike; of a very long text no more is read than is kept.

L tokens are kept of a text. A tokenizer would read five million characters for them, which takes five seconds.
"""

import re
from collections.abc import Sequence

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

CHARACTERS_PER_TOKEN = 16
"""More than any language takes on average; where a text takes more, more of it is read."""
LEAST_CHARACTERS = 1_000
_WORD_ENDS = re.compile(r"(?<=\w)(?=\W)")


def token_ids(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None
) -> list[list[int]]:
    """The token ids of each text, with special tokens; a text of none has that of padding.

    Args:
        texts: with their prompts.
        tokenizer: of any model that `AutoTokenizer` loads.
        max_length: L, special tokens included; None for all.
    """
    if not texts:
        return []
    encoded = tokenizer(
        cut(texts, tokenizer, max_length),
        truncation=max_length is not None,
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    nothing = [tokenizer.pad_token_id or 0]
    return [ids or nothing for ids in encoded["input_ids"]]


def longest_read(max_length: int | None) -> int | None:
    """Characters of which a text is cut before it is tokenised if it has more; None where none is cut."""
    return None if max_length is None else max(LEAST_CHARACTERS, CHARACTERS_PER_TOKEN * max_length)


def cut(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None) -> list[str]:
    """The texts, the very long ones without what is surely behind their first L tokens (before their last L, where the
    tokenizer keeps those); the L tokens are those of the whole text.

    What is cut off can change the tokens next to it only: those of the last two words as the tokenizer divides them,
    and of an added token that spans several. So a part is taken that ends where a word does, and it is enough when it
    has L tokens without these; else one of twice the length. A tokenizer that does not divide texts into words, or has
    no Rust backend to say how, reads them whole.
    """
    limit = longest_read(max_length)
    parts = list(texts)
    if limit is None or max_length is None or not tokenizer.is_fast:
        return parts
    from_left = tokenizer.truncation_side == "left"
    wanted = {i: limit for i, text in enumerate(texts) if len(text) > limit}
    while wanted:
        tried = {i: _part(texts[i], characters, from_left) for i, characters in wanted.items()}
        tried = {i: part for i, part in tried.items() if len(part) < len(texts[i])}  # the others stay whole
        enough = _hold(list(tried.values()), tokenizer, max_length, from_left)
        wanted = {}
        for (i, part), is_enough in zip(tried.items(), enough, strict=True):
            if is_enough:
                parts[i] = part
            else:
                wanted[i] = 2 * len(part)
    return parts


def _part(text: str, characters: int, from_left: bool) -> str:
    """At least so many characters of the begin of a text (of its end), up to the end of a word; all, if none ends."""
    if not from_left:
        end = _WORD_ENDS.search(text, characters)
        return text if end is None else text[: end.start()]
    space = text.rfind(" ", 0, max(0, len(text) - characters))
    while space > 0 and text[space - 1].isspace():
        space = text.rfind(" ", 0, space)
    return text[max(space, 0) :]


def _hold(
    parts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int, from_left: bool
) -> list[bool]:
    """Whether each part has L tokens that do not change with what was cut off."""
    if not parts:
        return []
    longest = max(map(len, tokenizer.get_added_vocab()), default=0)
    encoded = tokenizer(list(parts), add_special_tokens=False, truncation=False, verbose=False)
    return [
        _firm(one, len(part) - longest, longest, from_left) >= max_length
        for one, part in zip(encoded.encodings, parts, strict=True)
    ]


def _firm(encoding: Encoding, end: int, begin: int, from_left: bool) -> int:
    """The number of tokens that are neither of the last two words nor behind the character `end` (of the first two
    words nor before `begin`)."""
    words = [-1 if word is None else word for word in encoding.word_ids]
    if not words:
        return 0
    if from_left:
        return sum(
            word > words[0] + 1 and start >= begin
            for word, (start, _) in zip(words, encoding.offsets, strict=True)
        )
    return sum(
        word < words[-1] - 1 and stop <= end for word, (_, stop) in zip(words, encoding.offsets, strict=True)
    )
