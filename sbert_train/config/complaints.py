"""pydantic's errors -> one line for each wrong key: what was expected, what was found, what to do."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sbert_train.config.blocks import TreePath
from sbert_train.config.objectives import Objective
from sbert_train.config.reader import describe
from sbert_train.config.schema import RunConfig
from sbert_train.config.words import alternatives, annotation_of, did_you_mean, either, in_words, models_of


def complaints(error: ValidationError, tree: Mapping[str, Any]) -> Iterator[tuple[TreePath, str]]:
    """The path and the words of each thing that is wrong.

    Args:
        error: what RunConfig raised.
        tree: the values as the file has them, `${NAME}` not replaced, so that no secret is quoted.
    """
    found: dict[TreePath, str] = {}
    for one in error.errors(include_url=False, include_input=False):
        for at, text in _complaint(one["type"], one["loc"], one.get("ctx", {}), tree):
            found.setdefault(at, text)  # each alternative of a union complains, at the same place
    for at, text in found.items():
        if not any(other != at and other[: len(at)] == at for other in found):
            yield at, text


def _complaint(
    kind: str, loc: TreePath, ctx: Mapping[str, Any], tree: Mapping[str, Any]
) -> Iterator[tuple[TreePath, str]]:
    at, value = _place(loc, tree)
    if kind == "cross_check":
        for below, text in ctx["problems"]:
            wrong, found = _place((*at, *below), tree)
            whole = wrong == (*at, *below)
            yield (*at, *below), f"{text}, found {describe(found)}" if whole else text
    elif kind == "not_available":
        yield at, f"not available in this version, leave it {in_words(_annotation_at(at, tree))}"
    elif kind == "extra_forbidden" or loc[-1] == "[key]":
        yield at, _unknown_key(at, tree)
    elif kind == "missing" and isinstance(value, Mapping):
        (block,) = _blocks_at(at, tree)
        yield (*at, loc[-1]), f"missing, and needed: {block.model_fields[str(loc[-1])].description}"
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        yield (*at, "name"), _wrong_objective(value)
    elif (
        kind != "default_factory_not_called"
    ):  # of the name, when the source that it derives from is wrong itself
        yield at, _wrong_value(value, _annotation_at(at, tree))


def _place(loc: TreePath, tree: Any) -> tuple[TreePath, Any]:
    """Follow a location as far as the file goes: pydantic mixes the names of types and alternatives into it."""
    at: TreePath = ()
    for part in loc:
        if isinstance(tree, list):
            inside = isinstance(part, int) and part < len(tree)
        else:
            inside = isinstance(tree, Mapping) and part in tree
        if inside:
            tree, at = tree[part], (*at, part)
    return at, tree


def _annotation_at(at: TreePath, tree: Any) -> Any:
    """The type of the value at this path."""
    annotation: Any = RunConfig
    for part in at:
        annotation = _child(annotation, part, tree)
        tree = tree[part]
    return annotation


def _child(annotation: Any, part: str | int, value: Any) -> Any:
    """The type of an item of a value of this type."""
    for block in _blocks(annotation, value):
        return annotation_of(block.model_fields[str(part)])
    for one in alternatives(annotation):
        if get_origin(one) is tuple and isinstance(part, int):
            items = get_args(one)
            return items[0] if items[-1] is ... else items[part]
        if get_origin(one) not in (None, tuple):
            return get_args(one)[1]
    return Any


def _blocks(annotation: Any, value: Any) -> list[type[BaseModel]]:
    """The block that a value is meant to be: the objectives are told apart by their name."""
    blocks = models_of(annotation)
    if len(blocks) > 1 and isinstance(value, Mapping):
        blocks = [block for block in blocks if value.get("name") in _names(block)]
    return blocks


def _blocks_at(at: TreePath, tree: Any) -> list[type[BaseModel]]:
    return _blocks(_annotation_at(at, tree), _place(at, tree)[1])


def _names(block: type[BaseModel]) -> tuple[str, ...]:
    return get_args(block.model_fields["name"].annotation)


def _unknown_key(at: TreePath, tree: Any) -> str:
    *_, key = at
    parent = at[:-1]
    blocks = _blocks_at(parent, tree)
    if blocks:
        known = list(blocks[0].model_fields)
        whose = f" of objective {_names(blocks[0])[0]}" if parent[-1:] == ("objective",) else ""
    else:
        _, one_of = get_args(get_args(_annotation_at(parent, tree))[0])
        known = list(one_of.choices)
        whose = ""
    return f"unknown key{whose}{did_you_mean(str(key), known)} Known: {', '.join(known)}"


def _wrong_objective(value: Mapping[str, Any]) -> str:
    known = either(name for block in models_of(Objective) for name in _names(block))
    name = value.get("name")
    return f"expected {known}, found {describe(name) if 'name' in value else 'no name'}"


def _wrong_value(value: Any, annotation: Any) -> str:
    hint = ""
    if str in alternatives(annotation) and isinstance(value, bool | int | float):
        hint = "; put quotes around it if it is text"
    return f"expected {in_words(annotation)}, found {describe(value)}{hint}"
