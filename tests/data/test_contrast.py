"""The embedded data set: shipped as generated, correct English, no shortcuts, no word or template in two splits."""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from sbert_train.data.builtin import CONTRAST_FILES, generate
from sbert_train.data.builtin.frames import choose, contrasts, tell
from sbert_train.data.builtin.inflect import (
    Number,
    Word,
    gerund,
    ordinal,
    participle,
    past,
    plural,
    spell,
    tidy,
)
from sbert_train.data.builtin.lexicon import FUNCTION_WORDS, content, lemma, overlap, skeleton, words
from sbert_train.data.builtin.pairs import PLAN, SCALE, pairs
from sbert_train.data.builtin.reading import parse, read_frames
from sbert_train.data.builtin.triplets import triplets

SPLITS = ("train", "dev", "test")
PAIRS_OF_SPLITS = list(combinations(SPLITS, 2))
TRIPLET = ("anchor", "positive", "negative")
PHENOMENA = {"roles", "negation", "numbers", "time", "place", "antonyms", "paraphrase"}
NEGATORS = {word for word in FUNCTION_WORDS if word.endswith("n't")} | {
    *("not", "no", "never", "nobody", "none", "nothing", "neither", "nor", "without", "hardly", "cannot"),
    *("failed", "refused", "denied", "forgot"),
}


def _rows(split: str) -> list[dict[str, str]]:
    with CONTRAST_FILES[split].open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


ROWS = {split: _rows(split) for split in SPLITS}
TEXTS = {
    split: {row[column] for row in rows for column in row if column not in ("score", "phenomenon")}
    for split, rows in ROWS.items()
}


# --- the files


def test_the_shipped_files_are_what_the_generator_gives_byte_for_byte() -> None:
    assert generate.differing() == []
    assert generate.main(["--check"]) == 0


def test_a_changed_byte_is_noticed_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = {split: tmp_path / path.name for split, path in CONTRAST_FILES.items()}
    for split, path in stale.items():
        path.write_bytes(CONTRAST_FILES[split].read_bytes())
    stale["dev"].write_bytes(stale["dev"].read_bytes().replace(b"Nina", b"Tina", 1))
    monkeypatch.setattr(generate, "CONTRAST_FILES", stale)
    assert generate.differing() == ["dev"]
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0
    assert stale["dev"].read_bytes() == CONTRAST_FILES["dev"].read_bytes()


def test_the_splits_have_their_columns_and_enough_rows_in_less_than_a_megabyte() -> None:
    assert set(ROWS["train"][0]) == {"anchor", "positive", "negative", "phenomenon"}
    assert set(ROWS["dev"][0]) == set(ROWS["test"][0]) == {"sentence1", "sentence2", "score", "phenomenon"}
    assert len(ROWS["train"]) >= 4000
    assert len(ROWS["dev"]) >= 500
    assert len(ROWS["test"]) >= 1000
    assert sum(CONTRAST_FILES[split].stat().st_size for split in SPLITS) < 1_000_000
    assert CONTRAST_FILES["validation"] == CONTRAST_FILES["dev"]


@pytest.mark.parametrize(("split", "least"), [("train", 300), ("dev", 40), ("test", 90)])
def test_every_phenomenon_has_its_share_in_every_split(split: str, least: int) -> None:
    counts = Counter(row["phenomenon"] for row in ROWS[split])
    assert set(counts) == PHENOMENA | ({"topic", "unrelated"} if split != "train" else set())
    assert min(counts[name] for name in PHENOMENA) >= least


# --- training rows


def test_triplets_are_distinct_and_their_three_sentences_too() -> None:
    rows = [tuple(row[column] for column in TRIPLET) for row in ROWS["train"]]
    assert len(set(rows)) == len(rows)
    assert all(len(set(row)) == 3 for row in rows)


def test_no_negative_of_an_anchor_is_a_positive_of_it_elsewhere() -> None:
    same = {frozenset((row["anchor"], row["positive"])) for row in ROWS["train"]}
    assert not any(frozenset((row["anchor"], row["negative"])) in same for row in ROWS["train"])


def test_shared_words_do_not_tell_positives_from_negatives() -> None:
    more = [overlap(r["anchor"], r["negative"]) - overlap(r["anchor"], r["positive"]) for r in ROWS["train"]]
    assert sum(difference >= 0 for difference in more) / len(more) > 0.6  # hard: most share at least as many
    assert abs(sum(d > 0 for d in more) - sum(d < 0 for d in more)) / len(more) < 0.15


def _negated(sentence: str) -> bool:
    return any(word in NEGATORS for word in words(sentence))


def _passive(sentence: str) -> bool:
    return re.search(r"\b(?:was|were|is|been|being|got|gets) .*\bby\b", sentence) is not None


def _cleft(sentence: str) -> bool:
    return sentence.startswith(("It is", "It was"))


@pytest.mark.parametrize("cue", [_negated, _passive, _cleft])
def test_no_cue_of_form_tells_positives_from_negatives(cue: Callable[[str], bool]) -> None:
    has = [{column: cue(row[column]) for column in TRIPLET} for row in ROWS["train"]]
    share = {column: sum(row[column] for row in has) / len(has) for column in TRIPLET}
    assert all(value > 0.03 for value in share.values())  # anchors, positives and negatives all have it
    assert abs(share["positive"] - share["negative"]) < 0.02
    some = [row for row in has if any(row.values())]
    right = sum((r["anchor"] == r["positive"]) + (r["anchor"] != r["negative"]) for r in some)
    assert right / (2 * len(some)) < 0.65  # nor does having it like the anchor


@pytest.mark.parametrize("vocabulary", ["function words", "all words"])
def test_a_bag_of_words_cannot_tell_positives_from_negatives(vocabulary: str) -> None:
    def bag(sentence: str) -> set[str]:
        found = set(words(sentence))
        return found & FUNCTION_WORDS if vocabulary == "function words" else found

    train, heldout = ([row for i, row in enumerate(ROWS["train"]) if i // 2 % 2 == half] for half in (0, 1))
    seen = {column: Counter(word for row in train for word in bag(row[column])) for column in TRIPLET}
    evidence = {
        word: math.log((seen["positive"][word] + 1) / (seen["negative"][word] + 1))
        for word in seen["positive"] | seen["negative"]
    }
    right = sum(
        (sum(evidence.get(word, 0.0) for word in bag(row[column])) > 0) == (column == "positive")
        for row in heldout
        for column in ("positive", "negative")
    )
    assert 0.4 < right / (2 * len(heldout)) < 0.6


# --- held-out rows


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_whole_scale_is_used(split: str) -> None:
    counts = Counter(int(row["score"]) for row in ROWS[split])
    assert set(counts) == set(SCALE) == {0, 1, 2, 3, 4, 5}
    assert min(counts.values()) >= 0.03 * len(ROWS[split])
    assert max(counts.values()) < 0.4 * len(ROWS[split])


@pytest.mark.parametrize("split", ["dev", "test"])
def test_pairs_are_distinct_and_never_a_sentence_with_itself(split: str) -> None:
    both = [frozenset((row["sentence1"], row["sentence2"])) for row in ROWS[split]]
    assert len(set(both)) == len(both)
    assert all(len(pair) == 2 for pair in both)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_unrelated_sentences_share_no_content_word_and_contradictions_as_many_as_paraphrases(
    split: str,
) -> None:
    shared: dict[int, list[int]] = {score: [] for score in SCALE}
    for row in ROWS[split]:
        shared[int(row["score"])].append(len(content(row["sentence1"]) & content(row["sentence2"])))
    assert max(shared[0]) == 0
    assert sum(shared[2]) / len(shared[2]) > sum(shared[5]) / len(shared[5]) - 0.5


# --- what the splits must not share


def test_lemmas_are_blind_to_inflection() -> None:
    for one, other in (
        *(("dogs", "dog"), ("took", "take"), ("stopped", "stop"), ("hotter", "hot"), ("carried", "carry")),
        *(
            ("children", "child"),
            ("boxes", "box"),
            ("making", "make"),
            ("sharply", "sharp"),
            ("happiest", "happy"),
        ),
    ):
        assert lemma(one) == lemma(other), (one, other)
    assert lemma("bank") != lemma("bench")
    assert content("The dogs had stopped.") == {lemma("dog"), lemma("stop")}
    assert skeleton("By 7:30, the dogs had not eaten 12 eggs.") == "by # # , the _ had not _ # _ ."


@pytest.mark.parametrize(("one", "other"), PAIRS_OF_SPLITS)
def test_no_content_word_occurs_in_two_splits(one: str, other: str) -> None:
    vocabulary = {split: set().union(*map(content, TEXTS[split])) for split in (one, other)}
    assert min(map(len, vocabulary.values())) > 300  # the comparison is not empty
    assert vocabulary[one] & vocabulary[other] == set()


@pytest.mark.parametrize(("one", "other"), PAIRS_OF_SPLITS)
def test_no_sentence_of_one_split_has_the_template_of_another(one: str, other: str) -> None:
    templates = {split: set(map(skeleton, TEXTS[split])) for split in (one, other)}
    assert min(map(len, templates.values())) > 300
    assert templates[one] & templates[other] == set()


# --- English

SLIPS = re.compile(
    r"  | [.,;]|,,|,\.|\.\.|[{}_|]"  # gaps, doubled marks, what is left of a template
    r"|\b(\w+) \1\b"  # a doubled word
    r"|\b[Aa] (?=[aeiou])(?!uni|use|usu|euro|one\b|uku)|\b[Aa] (?=8|11\b|18\b|hour|honest|heir)"
    r"|\b[Aa]n (?![aeiou8]|11\b|18\b|hour|honest|heir)"
    r"|\b(?:was|were|been|is|are) (?:gave|took|went|saw|wrote|ate|broke|drove|stole|threw|knew|chose)\b"
    r"|\b(?:we|they|these|those) (?:is|was|has)\b|\b(?:he|she|it) (?:are|were|have)\b"
    r"|\b(?:does|did|must|may|will|would|could|can) \w+ed\b(?<!need)(?<!feed)"
)


@pytest.mark.parametrize(
    "slip", ["A apple fell.", "An dog ran.", "It was gave away.", "They was in in Rome."]
)
def test_the_lint_finds_slips(slip: str) -> None:
    assert SLIPS.search(slip)


@pytest.mark.parametrize("split", SPLITS)
def test_every_sentence_reads_as_english(split: str) -> None:
    for sentence in TEXTS[split]:
        assert re.fullmatch(r"[A-Z0-9][^.]*\.", sentence), sentence
        assert SLIPS.search(sentence) is None, sentence
        assert 4 <= len(sentence.split()) <= 20, sentence


def test_inflected_forms_come_out_right() -> None:
    assert [past(v) for v in ("take", "stop", "visit", "carry", "tie")] == [
        "took",
        "stopped",
        "visited",
        "carried",
        "tied",
    ]
    assert [past(v) for v in ("submit", "omit", "outwit")] == ["submitted", "omitted", "outwitted"]
    assert [past(v) for v in ("extol", "open", "answer")] == ["extolled", "opened", "answered"]
    assert [participle(v) for v in ("give", "write", "cut", "beat")] == ["given", "written", "cut", "beaten"]
    assert [gerund(v) for v in ("make", "tie", "swim", "see")] == ["making", "tying", "swimming", "seeing"]
    assert [plural(n) for n in ("child", "box", "city", "bus stop")] == [
        "children",
        "boxes",
        "cities",
        "bus stops",
    ]
    assert [spell(n) for n in (0, 13, 42, 120)] == ["zero", "thirteen", "forty-two", "one hundred and twenty"]
    assert spell(2500) == "two thousand five hundred"
    assert [ordinal(n) for n in (1, 3, 12, 20, 21)] == [
        "first",
        "third",
        "twelfth",
        "twentieth",
        "twenty-first",
    ]
    assert f"{Number(12000):d} {Number(3):th} {Number(7)}" == "12,000 third seven"
    assert f"{Word('look after'):past} {Word('carry'):s} {Word('police officer'):pl}" == (
        "looked after carries police officers"
    )
    assert tidy("a apple and a unit , an dog .") == "An apple and a unit, a dog."


# --- frames

SCENE = """
# A comment.
shared NUMBERS: n
    2; 3
frame: roles
rows: 2
table: x, y
    dog, cat; cow, horse
table: NUMBERS
same:
    The {x} saw {n} {y:pl}.
    {n} {y:pl} were seen by the {x}.
other:
    The {x} saw no {y}.
detail:
    The {x} heard {n} {y:pl}.
swap: x y
vary: n
"""


@pytest.mark.parametrize(("split", "many"), [("train", 100), ("dev", 25), ("test", 25)])
def test_there_are_many_frames_and_each_can_make_its_rows(split: str, many: int) -> None:
    frames = read_frames(split)
    assert len(frames) >= many
    for frame in frames:
        assert len(frame.same) >= 2
        assert frame.other or frame.swap or frame.vary, frame.same
        assert split == "train" or (frame.minor and frame.topic and frame.domain), frame.same


def test_a_frame_tells_its_scene_and_its_contrasts() -> None:
    (frame,) = parse(SCENE, "scene.txt")
    assert (frame.phenomenon, frame.rows, frame.swap, frame.vary) == ("roles", 2, (("x", "y"),), "n")
    assert tell(frame.same, choose(frame, (1, 0)), 5).sentences == (
        "The cow saw two horses.",
        "Two horses were seen by the cow.",
    )
    assert [(told.score, told.sentences[0]) for told in contrasts(frame, (1, 0), 0)] == [
        (2, "The cow saw no horse."),
        (2, "The horse saw two cows."),
        (3, "The cow heard two horses."),
        (3, "The cow saw three horses."),
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("rows: 2", "row: 2", r"scene\.txt:6: expected one of frame, rows, .*, found 'row'"),
        ("cow, horse", "cow", r"scene\.txt:7: a row of the table 'x, y' has 1 cells: cow"),
        ("heard {n}", "heard {m}", r"no table has the slots \['m'\] \(frame 'The \{x\} saw"),
        ("vary: n", "vary: z", r"no table has the slots \['z'\]"),
    ],
)
def test_a_mistake_in_a_frame_is_named_with_its_place(right: str, wrong: str, message: str) -> None:
    assert right in SCENE
    with pytest.raises(ValueError, match=message):
        list(parse(SCENE.replace(right, wrong), "scene.txt"))


def test_a_contrast_that_tells_the_same_is_refused() -> None:
    (frame,) = parse(
        "frame: f\nrows: 1\ntable: x\n  dog\nsame:\n  The {x} ran.\n  A {x} ran.\nother:\n  The {x} ran.", ""
    )
    with pytest.raises(ValueError, match=r"a contrast tells the scene itself: 'The dog ran\.'"):
        triplets(frame, seed=0)


def test_a_frame_with_too_few_scenes_for_its_rows_is_refused() -> None:
    (frame,) = parse(SCENE.replace("rows: 2", "rows: 200"), "scene.txt")
    with pytest.raises(ValueError, match=r"only \d+ of 200 scenes can be made \(frame 'The \{x\} saw"):
        triplets(frame, seed=0)
    (frame,) = parse(
        SCENE.replace("rows: 2", f"rows: {9 * len(PLAN)}\nminor:\n    One.\ntopic:\n    Two."), "scene.txt"
    )
    with pytest.raises(ValueError, match=r"no new pair of score \d in 50 draws"):
        pairs([frame], seed=0)
