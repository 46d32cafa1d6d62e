"""What the blocks of the configuration are made of: their base class, and the types of single values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

TreePath = tuple[str | int, ...]
"""Where a value stands in the file: ("data", "train", 0, "source")."""


def not_bool(value: object) -> object:
    """Python takes true for 1; who writes `seed: true` does not mean it."""
    if isinstance(value, bool):
        raise PydanticCustomError("bool_for_number", "a number, not true or false")
    return value


@dataclass(frozen=True)
class Only:
    """The type of a key whose feature comes in a later version: `off`, which switches it off, is all it may be."""

    off: bool | None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, given: object) -> object:
        if given != self.off:
            raise PydanticCustomError("not_available", "not available in this version, leave it off")
        return given


@dataclass(frozen=True)
class OneOf:
    """The type of a key of a mapping that must be one of these, and is plain text for those who use it."""

    choices: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.choices))


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, BeforeValidator(not_bool), Field(ge=1)]
Seed = Annotated[int, BeforeValidator(not_bool), Field(ge=0, le=2**32 - 1)]
Number = Annotated[float, BeforeValidator(not_bool)]
AboveZero = Annotated[float, BeforeValidator(not_bool), Field(gt=0)]
AtLeastZero = Annotated[float, BeforeValidator(not_bool), Field(ge=0)]
Share = Annotated[float, BeforeValidator(not_bool), Field(ge=0, lt=1)]
Scalar = bool | int | float | str


class Block(BaseModel):
    """A block of the configuration: frozen, strict, and checked as a whole once its keys are right by themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problems := list(self.wrong_keys()):
            raise PydanticCustomError("cross_check", "keys do not fit together", {"problems": problems})
        return self

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        """Keys that do not fit the others: the path below this block, and what was expected.

        The words quote no value: it may come from the environment.
        """
        return ()
