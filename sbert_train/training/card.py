"""What a run tells of itself in the card of its model: README.md beside the weights, which the Hub reads."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from sbert_train.config import RunConfig
from sbert_train.config.public import public_config, public_place
from sbert_train.data.locate import Files, HubId, classify
from sbert_train.data.sieve import describe
from sbert_train.evaluation.compare import Comparison
from sbert_train.export.card import CardFacts, HubSet, model_card
from sbert_train.model.resolve import hub_id_of
from sbert_train.training.examination import Examination
from sbert_train.training.parts import Parts
from sbert_train.training.run_folder import CARD, RunFolder, replace_text


def write_card(
    folder: RunFolder,
    config: RunConfig,
    parts: Parts,
    comparison: Comparison | None,
    notes: Sequence[str] = (),
) -> None:
    """Write README.md, the card that the Hub reads, beside the model."""
    replace_text(
        folder.model / CARD, model_card(parts.model.encoder, card_facts(config, parts, comparison, notes))
    )


def card_facts(
    config: RunConfig, parts: Parts, comparison: Comparison | None, notes: Sequence[str] = ()
) -> CardFacts:
    """What the card tells. Others read it, so values of the environment and folders of this machine are left out."""
    base = str(config.as_written(("model", "base"), config.model.base))
    sources = [_written_source(config, "train", i) for i in range(len(config.data.train))]
    return CardFacts(
        name=run_name(config),
        base=public_place(base),
        base_hub_id=hub_id_of(base),
        results=comparison.tasks if comparison else (),
        data=[
            f"{describe(loaded.name, loaded.account)}; from {_told(config, number, source)}"
            for number, (loaded, source) in enumerate(zip(parts.data.sets, sources, strict=True))
        ],
        config=public_config(config),
        objectives=parts.objectives.specs,
        rows=sum(loaded.account.kept for loaded in parts.data.sets),
        datasets=[source for source in sources if _on_the_hub(source)],
        evaluated_on=dict(_evaluated_on(config, parts)),
        notes=notes,
    )


def notes_on_results(examined: Examination, selected_by: str | None) -> list[str]:
    """What flatters the figures of a run: the choice of the model by one of them, and rows that it was trained on.

    Args:
        selected_by: EVALSET_METRIC; None where the last model was kept.
    """
    chosen = (
        f"The model was kept for its {selected_by}: the best of several figures, which flatters it a little."
    )
    seen = [
        f"{one.seen_rows:,} of {one.rows:,} rows of {facts.name} {'is' if one.seen_rows == 1 else 'are'} in the "
        f"training data, too ({one.train}): what they measure is partly memory."
        for facts in examined.eval
        for one in facts.overlaps
        if one.seen_rows
    ]
    return [*([chosen] if selected_by else []), *seen]


def run_name(config: RunConfig) -> str:
    """What a run and its model are called: as its folder; of one of several seeds, with that of all of them before."""
    path = PurePath(str(config.as_written(("output_dir",), config.output_dir)))
    several = re.fullmatch(r"seed-[0-9]+", path.name) and path.parent.name
    return f"{path.parent.name}-{path.name}" if several else path.name


def _written_source(config: RunConfig, block: str, number: int) -> str:
    """The source of a set as the configuration has it."""
    one = (config.data.train if block == "train" else config.data.eval)[number]
    return str(config.as_written(("data", block, number, "source"), one.source))


def _told(config: RunConfig, number: int, source: str) -> str:
    """Where the rows of a training set come from, without the folders that files lie in."""
    kind = classify(source)
    if isinstance(kind, Files):
        return PurePath(public_place(kind.pattern)).name
    one, at = config.data.train[number], ("data", "train", number)
    subset = "" if one.subset is None else f"subset {config.as_written((*at, 'subset'), one.subset)}, "
    return f"{source} ({subset}split {config.as_written((*at, 'split'), one.split)})"


def _on_the_hub(source: str) -> bool:
    return isinstance(classify(source), HubId)


def _evaluated_on(config: RunConfig, parts: Parts) -> Iterator[tuple[str, HubSet]]:
    """The eval sets that are a split of a Hub data set, of which no row was left out."""
    for number, (one, loaded) in enumerate(zip(config.data.eval, parts.eval_sets, strict=True)):
        source = _written_source(config, "eval", number)
        at = ("data", "eval", number)
        is_told = all(
            config.as_written((*at, key), value) == value
            for key, value in (("subset", one.subset), ("split", one.split))
        )
        if _on_the_hub(source) and is_told and loaded.account.kept == loaded.account.read:
            for name in (one.name, *(f"{one.name}_dim{dim}" for dim in parts.evaluated_dims)):
                yield name, HubSet(source, one.subset, one.split)
