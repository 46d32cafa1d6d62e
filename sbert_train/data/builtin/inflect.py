"""The little English morphology that sentence templates need: verb forms, plurals, numerals, articles."""

import re

_IRREGULAR_VERBS = """
    be was been; beat beat beaten; become became become; begin began begun; bend bent bent; bite bit bitten; bleed bled bled
    blow blew blown; break broke broken; bring brought brought; build built built; buy bought bought; catch caught caught
    choose chose chosen; come came come; cost cost cost; cut cut cut; dig dug dug; do did done; draw drew drawn
    drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed fed; feel felt felt; fight fought fought
    find found found; fly flew flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven
    freeze froze frozen; get got got; give gave given; go went gone; grow grew grown; hang hung hung; have had had
    hear heard heard; hide hid hidden; hit hit hit; hold held held; hurt hurt hurt; keep kept kept; know knew known
    lead led led; leave left left; lend lent lent; let let let; lose lost lost; make made made; mean meant meant
    meet met met; mislead misled misled; outrun outran outrun; overtake overtook overtaken; pay paid paid; put put put
    overthrow overthrew overthrown; read read read; ride rode ridden; ring rang rung; rise rose risen; run ran run
    say said said; see saw seen; seek sought sought; sell sold sold; send sent sent; set set set; shake shook shaken
    shoot shot shot; shrink shrank shrunk; shut shut shut; sing sang sung; sink sank sunk; sit sat sat; sleep slept slept
    speak spoke spoken; spend spent spent; spin spun spun; split split split; spread spread spread; stand stood stood; steal stole stolen
    stick stuck stuck; sting stung stung; strike struck struck; sweep swept swept; swim swam swum; take took taken
    teach taught taught; tear tore torn; tell told told; think thought thought; throw threw thrown; tie tied tied
    understand understood understood; wake woke woken; wear wore worn; win won won; withdraw withdrew withdrawn
    write wrote written; weave wove woven; weep wept wept; upset upset upset; shed shed shed; bind bound bound; rewrite rewrote rewritten; light lit lit
    outgrow outgrew outgrown; undo undid undone; repay repaid repaid; grind ground ground; cling clung clung
    overhear overheard overheard; hold held held; slide slid slid; swing swung swung; sow sowed sown; saw sawed sawn
    foresee foresaw foreseen; outbid outbid outbid; uphold upheld upheld; overrule overruled overruled; melt melted melted
"""
IRREGULAR_VERBS = {
    base: (past, participle)
    for base, past, participle in (entry.split() for entry in re.split(r"[;\n]", _IRREGULAR_VERBS.strip()))
}
IRREGULAR_PLURALS = {
    "child": "children", "man": "men", "woman": "women", "person": "people", "mouse": "mice", "foot": "feet",
    "tooth": "teeth", "wolf": "wolves", "leaf": "leaves", "knife": "knives", "shelf": "shelves", "thief": "thieves",
    "loaf": "loaves", "calf": "calves", "sheep": "sheep", "goose": "geese", "potato": "potatoes",
    "tomato": "tomatoes", "hero": "heroes", "wife": "wives", "half": "halves", "salmon": "salmon", "ox": "oxen",
}  # fmt: skip
# Verbs of more than one syllable that still double their last consonant ("admitted", but "visited").
_DOUBLING = """
admit commit refer permit prefer regret cancel travel label signal quarrel unravel omit submit outwit extol
"""
_ONE_SYLLABLE = re.compile(r"[^aeiou]*(?:qu)?[aeiou][bdgklmnprt]")
_UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
UNITS = _UNITS.split()
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
# Written with a vowel but not spoken with one, and the other way round.
_A_BEFORE_VOWEL = re.compile(r"(?:uni(?!n)|use|usu|uten|euro|one\b|once\b|ukul)")
_AN_BEFORE_CONSONANT = re.compile(r"(?:hour|honest|honour|heir|8|11\b|18\b)")


def _stem(verb: str) -> str:
    """The verb as it stands before -ed and -ing, its last consonant doubled where English doubles it."""
    return verb + verb[-1] if verb in _DOUBLING.split() or _ONE_SYLLABLE.fullmatch(verb) else verb


def past(verb: str) -> str:
    """take -> took, stop -> stopped."""
    return IRREGULAR_VERBS[verb][0] if verb in IRREGULAR_VERBS else _regular_past(verb)


def participle(verb: str) -> str:
    """take -> taken, stop -> stopped."""
    return IRREGULAR_VERBS[verb][1] if verb in IRREGULAR_VERBS else _regular_past(verb)


def _regular_past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return _stem(verb) + "ed"


def gerund(verb: str) -> str:
    """take -> taking, stop -> stopping, tie -> tying."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")) and verb != "be":
        return verb[:-1] + "ing"
    return _stem(verb) + "ing"


def sibilant_s(word: str) -> str:
    """The -s of plurals and of the third person: box -> boxes, carry -> carries."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do"):
        return word + "es"
    return word + "s"


def plural(noun: str) -> str:
    """child -> children; in a compound the last word carries it: police officer -> police officers."""
    head, _, last = noun.rpartition(" ")
    return f"{head} {IRREGULAR_PLURALS.get(last) or sibilant_s(last)}".strip()


def third_person(verb: str) -> str:
    """carry -> carries."""
    return {"be": "is", "have": "has"}.get(verb) or sibilant_s(verb)


def spell(number: int) -> str:
    """A number below a million in words: 42 -> forty-two, 300 -> three hundred."""
    if number < 20:
        return UNITS[number]
    if number < 100:
        tens, units = divmod(number, 10)
        return TENS[tens - 2] + (f"-{UNITS[units]}" if units else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    many, rest = divmod(number, size)
    joint = " and " if rest and rest < 100 else " "
    return f"{spell(many)} {name}" + (joint + spell(rest) if rest else "")


def ordinal(number: int) -> str:
    """The ordinal in words: 3 -> third, 20 -> twentieth, 21 -> twenty-first."""
    head, dash, last = spell(number).rpartition("-")
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return head + dash + _ORDINALS.get(last, regular)


def _head(form: str, phrase: str) -> str:
    """Inflect the first word of a verb phrase: look after -> looked after."""
    verb, _, rest = phrase.partition(" ")
    inflected = {"past": past, "pp": participle, "ing": gerund, "s": third_person}[form](verb)
    return f"{inflected} {rest}".strip()


class Word(str):
    """A filler of a template slot: {x}, {x:pl} plural, {v:past}, {v:pp}, {v:ing}, {v:s} third person."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        return plural(self) if form == "pl" else _head(form, self)


class Number(int):
    """A number in a template slot: {n} in words, {n:d} in digits, {n:th} as an ordinal."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        if form == "d":
            return f"{int(self):,}" if self >= 10_000 else str(int(self))
        return ordinal(self) if form == "th" else spell(self)


def tidy(sentence: str) -> str:
    """Close gaps left by empty slots, choose between a and an, begin with a capital."""
    sentence = re.sub(r"\s+", " ", sentence).strip()
    sentence = re.sub(r" (?=[.,;?])", "", sentence).lstrip(", ")
    sentence = re.sub(r"\b([Aa])n? (?=([\w-]+))", lambda m: f"{m[1]}{_n_before(m[2])} ", sentence)
    return sentence[0].upper() + sentence[1:]


def _n_before(word: str) -> str:
    word = word.lower()
    vowel = word[0] in "aeiou" and not _A_BEFORE_VOWEL.match(word)
    return "n" if vowel or _AN_BEFORE_CONSONANT.match(word) else ""
