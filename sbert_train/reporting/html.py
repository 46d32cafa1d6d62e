"""HTML that is put together safely: text becomes markup in one place, which leaves nothing in it that could act.

A page quotes data, names and configurations, which others may have written.
"""

import re
import unicodedata
from html import escape

_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_VOID = {"meta", "link", "br"}
_STEERS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction in which their neighbours are read, so that a text could look like another."""


class Html(str):
    """Markup: what may stand in a page as it is. Only this module and constants of this package make it."""

    __slots__ = ()


Child = str | None


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """An element; children that are not Html are text.

    Args:
        children: None for nothing.
        attributes: by their names, with `_` for `-` and without one at the end (`class_`); None leaves one out.

    >>> tag("p", "1 < 2", tag("b", "&"), class_="note")
    '<p class="note">1 &lt; 2<b>&amp;</b></p>'
    """
    given = "".join(
        f' {_attribute(key)}="{text(str(value))}"' for key, value in attributes.items() if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Html:
    """Children one behind the other; those that are not Html are text."""
    return Html("".join(one if isinstance(one, Html) else text(one) for one in children if one is not None))


def text(value: str) -> Html:
    r"""Text as markup that shows it, in an element or in an attribute.

    >>> text('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    return Html(escape(visible(value), quote=True))


def visible(value: str) -> str:
    r"""Text in which what cannot be shown, or turns the text around it, is written as Python writes it.

    Those are control characters but for line breaks and tabs, halves of surrogate pairs, which UTF-8 cannot even hold,
    characters that Unicode will never have, and those that change the direction of what follows.

    >>> print(visible("a\x00b" + chr(0x202E) + chr(0xD800)))
    a\x00b\u202e\ud800
    """
    return "".join(char.encode("unicode_escape").decode() if _acts(char) else char for char in value)


def shortened(value: str, most: int) -> str:
    """Text of at most so many characters, white space taken together, with an ellipsis where some are left out.

    >>> shortened("one two three", 8)
    'one two…'
    """
    value = " ".join(value.split())
    return value if len(value) <= most else f"{value[: most - 1].rstrip()}…"


def _acts(char: str) -> bool:
    if char in "\n\t":
        return False
    return char in _STEERS or unicodedata.category(char) in ("Cc", "Cs") or ord(char) & 0xFFFE == 0xFFFE


def _attribute(key: str) -> str:
    name = key.removesuffix("_").replace("_", "-")
    assert _ATTRIBUTE.fullmatch(name), name  # names are ours; values may be anybody's
    return name
