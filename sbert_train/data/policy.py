"""What can be wrong with a row that reads well, and what is done about it."""

from dataclasses import dataclass

REFUSE, DROP, KEEP = "refuse", "drop", "keep"

CHOICES: dict[str, tuple[str, ...]] = {
    "empty_text": (REFUSE, DROP, KEEP),
    "unlabelled": (REFUSE, DROP),
    "wrong_score": (REFUSE, DROP),
    "score_out_of_range": (REFUSE, DROP, KEEP),
    "wrong_label": (REFUSE, DROP),
    "wrong_text": (REFUSE, DROP),
    "mixed_labels": (REFUSE,),
}
"""Kind of problem -> what may be done about it: keep only where the row still says something true."""


@dataclass(frozen=True)
class Policy:
    """For each kind of problem: refuse the whole set, drop the row and count it, or keep it and count it.

    Attributes:
        empty_text: no text, or white space only; kept as the empty text that it is.
        unlabelled: a label that is empty, null or -1.
        wrong_score: a score that is no finite number.
        score_out_of_range: a score outside of score_range; kept as the end of the range that it is beyond.
        wrong_label: a label that is no whole number, or none of the names of the classes.
        wrong_text: a number, a list or an object where a text belongs.
    """

    empty_text: str = DROP
    unlabelled: str = DROP
    wrong_score: str = REFUSE
    score_out_of_range: str = REFUSE
    wrong_label: str = REFUSE
    wrong_text: str = REFUSE

    def __post_init__(self) -> None:
        for kind, choice in vars(self).items():
            if choice not in CHOICES[kind]:
                raise ValueError(
                    f"policy.{kind}: expected one of {', '.join(CHOICES[kind])}, found {choice!r}"
                )

    def of(self, kind: str) -> str:
        """What is done about this kind of problem."""
        return str(getattr(self, kind, REFUSE))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a row.

    Attributes:
        kind: a key of CHOICES.
        words: what was expected and what was found, without the place.
        can_be_kept: false where the row lacks what a kept one needs, such as any negative at all.
        role: whose text is empty, since a mistyped key of a JSON row looks like that; None for other kinds.
    """

    kind: str
    words: str
    can_be_kept: bool = True
    role: str | None = None

    @property
    def reason(self) -> str:
        """What the account of the rows calls it, such as `wrong score` or `empty positive`."""
        return self.kind.replace("_", " ") if self.role is None else f"empty {self.role}"

    @property
    def ways_out(self) -> str:
        """What the user may set in place of correcting the row."""
        others = " or ".join(choice for choice in CHOICES[self.kind] if choice != REFUSE)
        return f", or set policy.{self.kind} of this set to {others}" if others else ""


Problems = dict[int, list[Problem]]
"""Row of a chunk -> what is wrong with it, what weighs most first."""


def note(problems: Problems, row: int, kind: str, words: str) -> None:
    """Add a problem of a row."""
    problems.setdefault(row, []).append(Problem(kind, words))


def note_empty(problems: Problems, row: int, role: str, words: str, can_be_kept: bool = True) -> None:
    """Add that a row has no text in a role."""
    problems.setdefault(row, []).append(Problem("empty_text", words, can_be_kept, role))
