"""The schema in words, for messages and for the reference page: one truth for both."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sbert_train.config.blocks import OneOf, Only, Scalar
from sbert_train.config.reader import describe

_NOUNS: Mapping[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    NoneType: "null",
    dict: "a mapping",
    Any: "anything",
    Scalar | tuple[Scalar, ...]: "text, a number, true or false, or a list of these",
}


def in_words(annotation: Any) -> str:
    """What a key takes.

    >>> in_words(Literal["mean", "cls"] | None), in_words(tuple[str, ...])
    ('mean, cls or null', 'a list of text')
    """
    if annotation in _NOUNS:
        return _NOUNS[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        for one in args[1:]:
            if isinstance(one, Only):
                return describe(one.off)
            if isinstance(one, OneOf):
                return either(one.choices)
        return in_words(args[0]) + _bounds_in_words(args[1:])
    if origin in (Union, UnionType):
        if models := models_of(annotation):
            return in_words(models[0]) if len(models) == 1 else "a mapping with the key name and options"
        return either(word for part in args for word in _choices(part))
    if origin is Literal:
        return either(args)
    if origin in (tuple, list):
        args = args if origin is tuple else (*args, ...)
        items = [in_words(arg) for arg in args if arg is not ...]
        if args[-1] is not ...:
            return f"[{', '.join(items)}]"
        if models_of(args[0]):
            return f"a list of mappings{items[0].removeprefix('a mapping')}"
        return f"a list, each {items[0]}" if items[0].startswith(("a ", "an ")) else f"a list of {items[0]}"
    if origin is not None:
        return f"a mapping of {in_words(args[0])} to {in_words(args[1])}"
    return f"a mapping with the keys {', '.join(annotation.model_fields)}"


def _choices(annotation: Any) -> Iterable[object]:
    """The words that a member of a union adds to the list."""
    if annotation is bool:
        return ("true", "false")
    return get_args(annotation) if get_origin(annotation) is Literal else (in_words(annotation),)


def _bounds_in_words(metadata: Iterable[Any]) -> str:
    words = []
    for one in metadata:
        for bound in one.metadata if isinstance(one, FieldInfo) else [one]:
            match bound:
                case Ge(ge=limit):
                    words.append(f"of at least {limit}")
                case Gt(gt=limit):
                    words.append(f"above {limit}")
                case Le(le=limit):
                    words.append(f"at most {limit}")
                case Lt(lt=limit):
                    words.append(f"below {limit}")
    return " " + " and ".join(words) if words else ""


def annotation_of(field: FieldInfo) -> Any:
    """A field's type together with its bounds."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, without their bounds; a type that is no union is its own only member."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return tuple(part for one in get_args(annotation) for part in alternatives(one))
    return (annotation,)


def models_of(annotation: Any) -> list[type[BaseModel]]:
    """The blocks among the alternatives of a type."""
    return [
        part for part in alternatives(annotation) if isinstance(part, type) and issubclass(part, BaseModel)
    ]


def either(words: Iterable[object]) -> str:
    """`a, b or c`."""
    *most, last = map(str, words)
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean "columns"?` or, where nothing is close, nothing.

    >>> did_you_mean("colums", ["columns", "split"])
    ', did you mean "columns"?'
    """
    close = get_close_matches(word, list(known), n=1)
    return f', did you mean "{close[0]}"?' if close else "."
