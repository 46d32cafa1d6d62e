"""What a frame is: a small scene, the sentences that tell it, and the ways in which it could be otherwise."""

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sbert_train.data.builtin.inflect import Number, Word, tidy

Filler = Word | Number
Binding = Mapping[str, Filler]

SWAPPED_SCORE = 2  # roles exchanged, or the contrary said
VARIED_SCORE = 3  # the same event, but a detail that matters differs


@dataclass(frozen=True)
class Table:
    """Fillers that belong together: one column a slot, and each row a choice that makes sense."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Filler, ...], ...]


@dataclass(frozen=True)
class Frame:
    """Templates over the slots of its tables.

    `same` all tell one scene. Another scene, made of much the same words, comes from `other` (templates that say
    the contrary), from `swap` (slots that change places in `same`), or from `vary` (a slot whose table takes another
    row) and `detail` (templates that differ in a detail that matters). Held-out frames also have `minor` (the scene
    with a small thing added or left out), `topic` (something else about the same topic) and their `domain`.
    """

    phenomenon: str
    tables: tuple[Table, ...]
    same: tuple[str, ...]
    other: tuple[str, ...] = ()
    swap: tuple[tuple[str, str], ...] = ()
    vary: str = ""
    detail: tuple[str, ...] = ()
    minor: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    domain: str = ""
    rows: int = 1

    def __post_init__(self) -> None:
        used = set().union(*map(slots, self.templates), *self.swap, {self.vary} - {""})
        unknown = used - {column for table in self.tables for column in table.columns}
        if unknown:
            raise ValueError(f"no table has the slots {sorted(unknown)} (frame {self.same[0]!r})")

    @property
    def templates(self) -> tuple[str, ...]:
        """All of its templates."""
        return self.same + self.other + self.detail + self.minor + self.topic


def slots(template: str) -> set[str]:
    """The slot names that a template uses."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def render(template: str, binding: Binding) -> str:
    """The sentence that a template makes of a choice of fillers."""
    return tidy(template.format(**binding))


@dataclass(frozen=True)
class Telling:
    """One scene and the sentences that tell it, all of one meaning."""

    score: int  # how close it is to the frame's own scene, 0 to 5
    sentences: tuple[str, ...]


def tell(templates: Sequence[str], binding: Binding, score: int) -> Telling:
    """Every template of one meaning, rendered; equal sentences once."""
    return Telling(score, tuple(dict.fromkeys(render(template, binding) for template in templates)))


def choose(frame: Frame, choice: Sequence[int]) -> dict[str, Filler]:
    """The binding that takes row choice[i] of the frame's table i."""
    return {
        column: cell
        for table, row in zip(frame.tables, choice, strict=True)
        for column, cell in zip(table.columns, table.rows[row], strict=True)
    }


def contrasts(frame: Frame, choice: Sequence[int], step: int) -> Iterator[Telling]:
    """The scenes told in much the same words that are not this one; `step` picks the row that varies to."""
    binding = choose(frame, choice)
    if frame.other:
        yield tell(frame.other, binding, SWAPPED_SCORE)
    if frame.swap:
        exchanged = dict(binding)
        for left, right in frame.swap:
            exchanged[left], exchanged[right] = binding[right], binding[left]
        yield tell(frame.same, exchanged, SWAPPED_SCORE)
    if frame.detail:
        yield tell(frame.detail, binding, VARIED_SCORE)
    if frame.vary:
        at = next(i for i, table in enumerate(frame.tables) if frame.vary in table.columns)
        many = len(frame.tables[at].rows)
        moved = (choice[at] + 1 + step % (many - 1)) % many
        yield tell(frame.same, choose(frame, [*choice[:at], moved, *choice[at + 1 :]]), VARIED_SCORE)
