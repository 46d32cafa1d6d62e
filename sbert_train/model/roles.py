"""What a model knows of the roles of texts: whose prompt a text gets, and whose head where there are two."""

from collections.abc import Mapping

from sbert_train.errors import ModelError

SIDES = ("query", "document")
"""What a text is to a model with two heads."""

SIDE_OF_ROLE: Mapping[str, str] = {
    "anchor": "query",
    "sentence1": "query",
    "positive": "document",
    "negative": "document",
    "sentence2": "document",
}
"""Role -> the head that embeds its texts, where there are two."""

PROMPT_NAMES = {"anchor": "query", "positive": "document", "negative": "document"}
"""Role -> the name by which sentence-transformers' encode_query and encode_document look its prompt up."""


def side_of(role: str | None) -> str:
    """The side of a role, or of the side's own name.

    Raises:
        ModelError: it has none, or none is given.
    """
    side = SIDE_OF_ROLE.get(role or "", role)
    if side not in SIDES:
        found = "no role" if role is None else f"the role {role!r}"
        raise ModelError(
            "this model has two heads, one for queries and one for documents: expected role query or document, or "
            f"one of {', '.join(SIDE_OF_ROLE)}; found {found}"
        )
    return side


def prompt_of(role: str | None, prompts: Mapping[str, str], default_name: str | None) -> str:
    """The prompt of that name, else query for an anchor and document for a positive or negative, else the default,
    else nothing."""
    for name in (role, PROMPT_NAMES.get(role or ""), default_name):
        if name is not None and name in prompts:
            return prompts[name]
    return ""


def named_prompts(prompts: Mapping[str, str]) -> dict[str, str]:
    """Prompt name -> text, of role or prompt name -> text.

    Raises:
        ModelError: a positive and a negative, which are documents both and have one prompt, differ in it.
    """
    named: dict[str, str] = {}
    for role, text in prompts.items():
        name = PROMPT_NAMES.get(role, role)
        if named.setdefault(name, text) != text:
            roles = [role for role in prompts if PROMPT_NAMES.get(role, role) == name]
            raise ModelError(
                f"prompts: {' and '.join(roles)} share the prompt {name!r}: expected one text, found "
                f"{named[name]!r} and {text!r}"
            )
    return named
