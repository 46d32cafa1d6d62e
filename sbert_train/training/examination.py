"""The sets of a run, looked at before its first step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sbert_train.config import EvalSet, RunConfig, TrainSet
from sbert_train.data.examination.facts import SetFacts, examine, with_overlaps
from sbert_train.data.examination.text_keys import TextKeys
from sbert_train.data.sources import LoadedSet
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training.parts import Parts


@dataclass(frozen=True)
class Examination:
    """What is known of all sets of a run."""

    train: tuple[SetFacts, ...]
    eval: tuple[SetFacts, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values for json.dumps."""
        return {"train": [one.to_json() for one in self.train], "eval": [one.to_json() for one in self.eval]}


def examine_sets(config: RunConfig, parts: Parts) -> Examination:
    """Look at every set that a run trains on or is judged by."""
    data, encoder = parts.data, parts.model.encoder
    trained, keys = [], {}
    for number, (one, asked) in enumerate(zip(data.sets, config.data.train, strict=True)):
        roles = [role for role in one.rows.column_names if role not in data.unused[one.name]]
        spec = parts.objectives.spec_of(number)
        apart = spec.kind.batch_is_negatives or spec.name == "triplet"
        facts, keys[one.name] = _examine(one, asked, f"data.train.{number}", roles, encoder, apart)
        trained.append(facts)
    evaluated = []
    for number, (one, wanted) in enumerate(zip(parts.eval_sets, config.data.eval, strict=True)):
        facts, own = _examine(one, wanted, f"data.eval.{number}", one.rows.column_names, encoder, False)
        evaluated.append(with_overlaps(facts, own, keys))
    return Examination(tuple(trained), tuple(evaluated))


def _examine(
    one: LoadedSet,
    asked: TrainSet | EvalSet,
    key: str,
    roles: Sequence[str],
    encoder: SentenceEncoder,
    pushes_apart: bool,
) -> tuple[SetFacts, TextKeys]:
    return examine(
        one,
        key,
        roles,
        encoder.tokenizer,
        pushes_apart=pushes_apart,
        max_length=encoder.max_length,
        prompts={role: encoder.prompt_for(role) for role in roles},
        score_range=asked.score_range,
        labels=asked.labels,
    )
