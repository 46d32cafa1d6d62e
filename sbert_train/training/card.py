"""What a run tells of itself in the card of its model: README.md beside the weights, which the Hub reads."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from sbert_train.config import EvalSet, RunConfig, TrainSet
from sbert_train.config.public import public_config, public_place
from sbert_train.data.locate import Files, HubId, classify
from sbert_train.data.sieve import describe
from sbert_train.evaluation.compare import Comparison
from sbert_train.export.card import CardFacts, HubSet, model_card
from sbert_train.model.resolve import hub_id_of
from sbert_train.training.parts import Parts
from sbert_train.training.run_folder import CARD, RunFolder, replace_text


def write_card(folder: RunFolder, config: RunConfig, parts: Parts, comparison: Comparison | None) -> None:
    """Write README.md, the card that the Hub reads, beside the model."""
    replace_text(folder.model / CARD, model_card(parts.model.encoder, card_facts(config, parts, comparison)))


def card_facts(config: RunConfig, parts: Parts, comparison: Comparison | None) -> CardFacts:
    """What the card tells. Others read it, so values of the environment and folders of this machine are left out."""
    base = str(config.as_written(("model", "base"), config.model.base))
    sources = [_written_source(config, "train", i) for i in range(len(config.data.train))]
    return CardFacts(
        name=run_name(config),
        base=public_place(base),
        base_hub_id=hub_id_of(base),
        results=comparison.tasks if comparison else (),
        data=[
            f"{describe(loaded.name, loaded.account)}; from {_told(source, one)}"
            for loaded, source, one in zip(parts.data.sets, sources, config.data.train, strict=True)
        ],
        config=public_config(config),
        objectives=parts.objectives.specs,
        rows=sum(loaded.account.kept for loaded in parts.data.sets),
        datasets=[source for source in sources if _on_the_hub(source)],
        evaluated_on=dict(_evaluated_on(config, parts)),
    )


def run_name(config: RunConfig) -> str:
    """What a run and its model are called: as its folder; of one of several seeds, with that of all of them before."""
    path = PurePath(str(config.as_written(("output_dir",), config.output_dir)))
    several = re.fullmatch(r"seed-[0-9]+", path.name) and path.parent.name
    return f"{path.parent.name}-{path.name}" if several else path.name


def _written_source(config: RunConfig, block: str, number: int) -> str:
    """The source of a set as the configuration has it."""
    one = (config.data.train if block == "train" else config.data.eval)[number]
    return str(config.as_written(("data", block, number, "source"), one.source))


def _told(source: str, one: TrainSet | EvalSet) -> str:
    """Where rows come from, without the folders that files lie in."""
    kind = classify(source)
    if isinstance(kind, Files):
        return PurePath(public_place(kind.pattern)).name
    subset = "" if one.subset is None else f"subset {one.subset}, "
    return f"{source} ({subset}split {one.split})"


def _on_the_hub(source: str) -> bool:
    return isinstance(classify(source), HubId)


def _evaluated_on(config: RunConfig, parts: Parts) -> Iterator[tuple[str, HubSet]]:
    """The eval sets that are a split of a Hub data set, of which no row was left out."""
    for number, (one, loaded) in enumerate(zip(config.data.eval, parts.eval_sets, strict=True)):
        source = _written_source(config, "eval", number)
        if _on_the_hub(source) and loaded.account.kept == loaded.account.read:
            for name in (one.name, *(f"{one.name}_dim{dim}" for dim in parts.evaluated_dims)):
                yield name, HubSet(source, one.subset, one.split)
