"""Tiny files in the shape of the data folder, small enough to check by eye."""

import json
from pathlib import Path

STSB = """sentence1,sentence2,score
a cat sat,"the cat, a cat, sat",5.0
a cat sat,001,0.5
a dog ran,None,0
"""

SNLI = {
    "dev": [
        ("a cat sat", "the cat sat on a mat", 1),
        ("a cat sat", "a cat", 0),
        ("a cat sat", "a dog ran", 2),
        ("a cat sat", "the cat sat", 0),
        ("a man saw a dog", "a dog saw a man", 2),
    ],
    "test": [
        ("a man saw a dog", "a man saw", 0),
        ("a man saw a dog", "the man slept", 2),
        ("a cat sat", "the cat slept", 2),
        ("a cat sat", "the cat ran", 2),
    ],
}

TRECQA = [
    ("who saw the dog ?", "the man saw the dog .", 1),
    ("who saw the dog ?", "the cat sat on the mat .", 0),
    ("who slept ?", "the child ate fish .", 0),
    ("where is the train ?", "the train ran near the river .", 0),
    ("where is the train ?", "the train is in the city .", 1),
    ("where is the train ?", "rain and sun .", 0),
    ("what is red ?", "the apple is red .", 1),
]


def write_data(folder: Path) -> Path:
    """Write all files; the folder."""
    for split in ("train", "dev", "test"):
        (folder / f"stsb-en-{split}.csv").write_text(STSB, encoding="utf-8")
        _jsonl(folder / f"trecqa-{split}.jsonl", ("question", "answer", "label"), TRECQA)
    for split, rows in SNLI.items():
        _jsonl(folder / f"snli-{split}.jsonl", ("premise", "hypothesis", "label"), rows)
    return folder


def _jsonl(file: Path, names: tuple[str, ...], rows: list[tuple[str, str, int]]) -> None:
    lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
