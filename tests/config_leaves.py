"""Every field of the configuration that takes a value, by its dotted path."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from sbert_train.config import Objective, RunConfig
from sbert_train.config.words import alternatives, annotation_of, models_of

OBJECTIVES = models_of(Objective)


def leaves(block: type[BaseModel] = RunConfig, at: str = "") -> Iterator[str]:
    """The paths below a block: `model.head.dim`, `data.train.source`, `objective.triplet.margin`.

    The objective of a set is one leaf, as its keys are those of `objective`.
    """
    for name, field in block.model_fields.items():
        annotation, path = annotation_of(field), f"{at}{name}"
        blocks = models_of(annotation) or _items(annotation)
        if blocks == OBJECTIVES and not at:
            for one in blocks:
                (kind,) = get_args(one.model_fields["name"].annotation)
                yield from leaves(one, f"{path}.{kind}.")
        elif len(blocks) == 1:
            yield from leaves(blocks[0], f"{path}.")
        else:
            yield path


def _items(annotation: Any) -> list[type[BaseModel]]:
    """The block that a list is of, if it is one of blocks."""
    lists = [get_args(one)[0] for one in alternatives(annotation) if get_origin(one) is tuple]
    return [block for one in lists for block in models_of(one)]
