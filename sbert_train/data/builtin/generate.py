"""Write the shipped files of `builtin:contrast` from the frames, or check that they are what the frames give.

python -m sbert_train.data.builtin.generate [--check]
"""

import csv
import functools
import io
import sys
from collections.abc import Iterable, Sequence

from sbert_train.data.builtin import CONTRAST_FILES
from sbert_train.data.builtin.pairs import pairs
from sbert_train.data.builtin.reading import read_frames
from sbert_train.data.builtin.triplets import triplets

SEED = 2026


@functools.cache
def generated() -> dict[str, str]:
    """The text of each file, by split."""
    train = [row for frame in read_frames("train") for row in triplets(frame, SEED)]
    return {
        "train": _csv(
            ("anchor", "positive", "negative", "phenomenon"),
            ((row.anchor, row.positive, row.negative, row.phenomenon) for row in train),
        )
    } | {
        split: _csv(
            ("sentence1", "sentence2", "score", "phenomenon"),
            (
                (row.sentence1, row.sentence2, str(row.score), row.phenomenon)
                for row in pairs(read_frames(split), SEED)
            ),
        )
        for split in ("dev", "test")
    }


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def differing() -> list[str]:
    """The splits whose shipped file is not, byte for byte, what the frames give."""
    return [
        split
        for split, text in generated().items()
        if not CONTRAST_FILES[split].is_file() or CONTRAST_FILES[split].read_bytes() != text.encode()
    ]


def main(arguments: Sequence[str]) -> int:
    """0 when the files are as generated (or now are), 1 when --check finds that they differ."""
    if "--check" in arguments:
        stale = differing()
        print(
            f"differ from the generator: {', '.join(stale)}"
            if stale
            else "identical to the generator's output"
        )
        return bool(stale)
    for split, text in generated().items():
        CONTRAST_FILES[split].write_bytes(text.encode())
        print(
            f"{CONTRAST_FILES[split].name}: {text.count(chr(10)) - 1} rows, {len(text.encode()) / 1000:.0f} kB"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
