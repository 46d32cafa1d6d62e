"""Which words carry content, and when two of them are the same word: what splits must not share."""

import re

from sbert_train.data.builtin.inflect import IRREGULAR_PLURALS, IRREGULAR_VERBS, TENS, UNITS, ordinal

# Words of grammar, that every text needs and any split may use.
_GRAMMAR = """
a an the this that these those such same other others another each every either neither both all none no any
some half quarter thirds quarters double twice once dozen pair couple few fewer fewest many much more most
less least several enough ones last next only own else i you he she it we they me him her us them my your his
its our their mine yours hers ours theirs myself himself herself itself themselves who whom whose which what
when where why how there here nobody somebody everybody anybody nothing something everything anything someone
anyone everyone nowhere somewhere everywhere be am is are was were been being have has had having do does did
doing done will would shall should can could may might must need ought let don't doesn't didn't isn't aren't
wasn't weren't hasn't haven't hadn't won't wouldn't can't cannot couldn't shouldn't not never nor without
hardly scarcely barely and or but so if unless because since although though while whereas as than whether
until till before after of in on at by for from to into onto out off over under above below up down with about
against along among around across behind between beside beyond during despite except inside outside near per
through throughout towards toward upon via within alongside underneath means somewhat apart according instead
due front also again already almost always anymore away back even ever far forward further however indeed just
later earlier now nearly often perhaps quite rather really soon still then thus together too usually very well
yet yes long ago s t hundred thousand million
"""
_NUMERALS = [*UNITS, *TENS, *(ordinal(n) for n in range(1, 13))]
FUNCTION_WORDS = frozenset([*_GRAMMAR.split(), *_NUMERALS])
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_IRREGULAR = (
    {form: base for base, forms in IRREGULAR_VERBS.items() for form in forms if form not in FUNCTION_WORDS}
    | {many: one for one, many in IRREGULAR_PLURALS.items()}
    | {"better": "good", "best": "good", "worse": "bad", "worst": "bad", "went": "go", "gone": "go"}
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without numerals; a possessive 's is dropped."""
    return [word.removesuffix("'s") for word in _WORD.findall(text.lower().replace("-", " "))]


def lemma(word: str) -> str:
    """A word without its inflection: dogs -> dog, took -> take, hotter -> hot.

    Cuts rather too much than too little (it makes one of "plan" and "plane"), so that what it tells apart is apart.
    """
    word = _IRREGULAR.get(word, word)
    for suffix in ("ing", "edly", "ed", "iest", "ier", "est", "er", "ies", "es", "s", "ly", "e", "y"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix)
            if suffix not in ("s", "es", "ly"):
                break
    word = word.removesuffix("i") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


def content(text: str) -> set[str]:
    """The lemmas of a text's content words."""
    return {lemma(word) for word in words(text) if word not in FUNCTION_WORDS}


def skeleton(sentence: str) -> str:
    """A sentence with its content words and numbers taken out: what remains of it is its template."""
    tokens = re.findall(r"[a-z]+(?:'[a-z]+)?|\d+|[.,;?]", sentence.lower().replace("-", " "))
    kept = ["#" if t.isdigit() else t if t in FUNCTION_WORDS or not t[0].isalpha() else "_" for t in tokens]
    return " ".join(kept)


def overlap(one: str, two: str) -> float:
    """Jaccard overlap of the words of two sentences."""
    left, right = set(words(one)), set(words(two))
    return len(left & right) / len(left | right)
