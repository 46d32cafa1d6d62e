"""Files of the data folder -> training rows, whose columns are named by role and stand in the order of roles.

The folder holds
- stsb-en-{train,dev,test}.csv: STS benchmark (Cer et al. 2017); a header, sentence1, sentence2, score from 0 to 5;
- snli-{dev,test}.jsonl: SNLI (Bowman et al. 2015); premise, hypothesis, label
  (0 entailment, 1 neutral, 2 contradiction);
- trecqa-{train,dev,test}.jsonl: TREC QA (Wang et al. 2007); question, answer, label (1: it answers, 0: not).
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Build = Callable[[Path], list[Row]]

ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)
STSB_HIGHEST = 5.0


def read_csv(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header, every value as the text it is."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def read_jsonl(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_jsonl(file: Path, rows: Iterable[Row]) -> None:
    """One row a line."""
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def stsb(folder: Path, split: str) -> list[Row]:
    """sentence1, sentence2 and score, from 0 to 1: the range of a cosine that regression can reach."""
    return [
        {
            "sentence1": row["sentence1"],
            "sentence2": row["sentence2"],
            "score": float(row["score"]) / STSB_HIGHEST,
        }
        for row in read_csv(folder / f"stsb-en-{split}.csv")
    ]


def stsb_train(folder: Path) -> list[Row]:
    """The scored pairs of STSb train."""
    return stsb(folder, "train")


def snli_labelled(folder: Path, split: str) -> list[Row]:
    """sentence1, sentence2 and label (0 entailment, 1 neutral, 2 contradiction)."""
    return [
        {"sentence1": row["premise"], "sentence2": row["hypothesis"], "label": row["label"]}
        for row in read_jsonl(folder / f"snli-{split}.jsonl")
    ]


def snli_dev_labelled(folder: Path) -> list[Row]:
    """The labelled pairs of SNLI dev."""
    return snli_labelled(folder, "dev")


def snli_pairs(folder: Path) -> list[Row]:
    """anchor (a premise) and positive (a hypothesis that it entails), of SNLI dev, then test."""
    return [
        {"anchor": row["sentence1"], "positive": row["sentence2"]}
        for split in ("dev", "test")
        for row in snli_labelled(folder, split)
        if row["label"] == ENTAILMENT
    ]


def snli_triplets(folder: Path) -> list[Row]:
    """anchor, positive and negative: the i-th entailment of a premise with its i-th contradiction.

    Premises are those of SNLI dev and test together, in order of their first row, equal texts being one premise;
    entailments and contradictions are counted in the order of the files. What is left without a partner is left out.
    """
    by_premise: dict[str, tuple[list[str], list[str]]] = {}
    for split in ("dev", "test"):
        for row in snli_labelled(folder, split):
            entailed, contradicted = by_premise.setdefault(row["sentence1"], ([], []))
            if row["label"] == ENTAILMENT:
                entailed.append(row["sentence2"])
            elif row["label"] == CONTRADICTION:
                contradicted.append(row["sentence2"])
    return [
        {"anchor": premise, "positive": positive, "negative": negative}
        for premise, hypotheses in by_premise.items()
        for positive, negative in zip(*hypotheses, strict=False)
    ]


def trecqa_pairs(folder: Path) -> list[Row]:
    """anchor (a question) and positive (a sentence that answers it), of TREC QA train."""
    return [
        {"anchor": row["question"], "positive": row["answer"]}
        for row in read_jsonl(folder / "trecqa-train.jsonl")
        if row["label"] == 1
    ]


def trecqa_candidates(folder: Path, split: str) -> dict[str, list[tuple[str, int]]]:
    """Question -> its candidate answers with their labels; without questions that have none of one of the labels.

    Where no candidate answers, or every one does, any ranking is as good as another (Wang et al. 2007 and who
    followed leave these out, too).
    """
    candidates: dict[str, list[tuple[str, int]]] = {}
    for row in read_jsonl(folder / f"trecqa-{split}.jsonl"):
        candidates.setdefault(row["question"], []).append((row["answer"], row["label"]))
    return {
        question: answers
        for question, answers in candidates.items()
        if {label for _, label in answers} == {0, 1}
    }
