"""Text from data or a configuration in Markdown, where it must stay text: no HTML, no link, no end of a code block."""

import re

# An underscore between letters begins nothing (CommonMark 0.31, section 6.2), and names are full of them.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)")


def plain(text: str) -> str:
    r"""Text as a line or a cell of a table shows it.

    >>> print(plain("a <b>|c\nd"))
    a \<b\>\|c d
    """
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


def code(text: str) -> str:
    """Text as code within a line (CommonMark 0.31, section 6.1: a longer run of backticks encloses shorter ones).

    >>> print(code("a `b`"))
    `` a `b` ``
    """
    text = " ".join(text.split())
    ticks = "`" * (_longest_run("`", text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def fenced(text: str, language: str) -> str:
    """Lines as a block of code (section 4.5: no line of it closes a longer fence)."""
    fence = "~" * max(4, _longest_run("~", text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(character: str, text: str) -> int:
    return max(map(len, re.findall(f"{re.escape(character)}+", text)), default=0)
