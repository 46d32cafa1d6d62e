"""Whether the texts of a role are questions: where positives are and anchors are not, the two may be swapped."""

from collections.abc import Sequence

_ENDS = ("?", "\uff1f", "\u061f")  # as in English, Chinese and Arabic


def share_of_questions(texts: Sequence[str]) -> float:
    """The share of texts that end in a question mark (0 to 1)."""
    return sum(text.rstrip().endswith(_ENDS) for text in texts) / len(texts)
