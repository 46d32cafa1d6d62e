"""Tables as the pages have them."""

from collections.abc import Iterable, Sequence

NOTHING = "-"


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], right: int = 0) -> str:
    """A table; its last `right` columns are aligned to the right.

    >>> print(markdown(("side", "steps"), [("ours", 3)], right=1), end="")
    | side | steps |
    |---|---:|
    | ours | 3 |
    """
    left = len(head) - right
    rule = "|" + "|".join(["---"] * left + ["---:"] * right) + "|"
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"
