"""The schema, the rooms that it configures and its reference page say the same."""

from pathlib import Path
from typing import get_args

from sbert_train.config import RunConfig
from sbert_train.config.reader import parse_yaml
from sbert_train.config.reference import reference_markdown
from sbert_train.config.schema import TEXT_ROLES, Activation, Pooling, Role
from sbert_train.data.mixing import Strategy
from sbert_train.data.roles import ROLES
from sbert_train.evaluation.tasks import TASKS
from sbert_train.model.layout import ACTIVATIONS
from sbert_train.model.pooling import POOLINGS
from tests.configs import EVERY_KEY


def test_the_choices_of_the_schema_are_those_of_the_rooms() -> None:
    assert set(get_args(Pooling)) == set(POOLINGS)
    assert set(get_args(Activation)) == set(ACTIVATIONS)
    assert (set(get_args(Role)[1].choices), set(TEXT_ROLES)) == (set(ROLES), set(ROLES) - {"score", "label"})
    fields = RunConfig.model_fields["data"].annotation.model_fields  # type: ignore[union-attr]
    assert get_args(fields["mixing"].annotation.model_fields["strategy"].annotation) == get_args(Strategy)
    assert set(get_args(get_args(fields["eval"].annotation)[0].model_fields["task"].annotation)) == set(TASKS)


def test_the_reference_page_is_up_to_date() -> None:
    page = Path(__file__).parent.parent / "docs" / "config.md"
    assert page.read_text(encoding="utf-8") == reference_markdown(), "run `make docs`"


def test_the_reference_page_has_the_main_metric_of_every_task() -> None:
    page = " ".join(reference_markdown().split())
    missing = [
        kind for kind, task in TASKS.items() if f"`eval_NAME_{task.primary_metric}` for {kind}" not in page
    ]
    assert missing == []


def test_the_reference_page_has_every_key() -> None:
    config = RunConfig.model_validate(parse_yaml(EVERY_KEY))

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list | tuple) else set()

    named = keys(config.model_dump(exclude={"train": True, "data": {"train": {0: {"where", "columns"}}}}))
    assert len(named) > 40
    assert [key for key in named - {"anchor", "train"} if f"| `{key}` |" not in reference_markdown()] == []
