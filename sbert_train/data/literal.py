"""Texts are read as the characters that they are: what a user writes is never a special token.

A tokenizer looks for the names of its special tokens in a text, so that who writes `[SEP]` in a product review would
write the end of a text. Those that it puts around every text stay.
"""

import re

from tokenizers import Regex, pre_tokenizers
from transformers import PreTrainedTokenizerBase


def read_literally(tokenizer: PreTrainedTokenizerBase) -> None:
    """Have a tokenizer read the names of its special tokens as text, in place; it says so where it is saved, too.

    Some vocabularies hold these names besides as pieces of text, as those of XLM-RoBERTa do: there they are cut in two
    before the vocabulary is asked. What transformers builds anew when it loads such a tokenizer is without that cut, so
    that it has to be told at each load.
    """
    tokenizer.split_special_tokens = True
    tokenizer.init_kwargs["split_special_tokens"] = True  # what is saved is what it was made with
    if tokenizer.is_fast and _are_pieces(tokenizer):
        backend = tokenizer.backend_tokenizer
        steps = [backend.pre_tokenizer] if backend.pre_tokenizer else []
        backend.pre_tokenizer = pre_tokenizers.Sequence([*steps, _cut_in_two(tokenizer.all_special_tokens)])


def _are_pieces(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the name of a special token still comes out as that token; that of an unknown piece proves nothing."""
    return any(
        number != tokenizer.unk_token_id and number in tokenizer(token, add_special_tokens=False)["input_ids"]
        for token, number in zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
    )


def _cut_in_two(tokens: list[str]) -> pre_tokenizers.PreTokenizer:
    """Cuts behind the first character of each of these names, wherever one stands."""
    names = [f"{re.escape(token[0])}(?={re.escape(token[1:])})" for token in tokens if len(token) > 1]
    return pre_tokenizers.Split(Regex("|".join(names)), "merged_with_previous")
