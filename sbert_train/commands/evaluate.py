"""sbert-train eval."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sbert_train.commands.printing import print_comparison, quiet_libraries
from sbert_train.errors import CommandError
from sbert_train.evaluation.kinds import KINDS


def evaluate(
    models: Annotated[list[str], typer.Argument(help="Folders, Hub ids or package://module/folder.")],
    config: Annotated[
        str | None, typer.Option("--config", help="Take the eval sets of this configuration.", metavar="FILE")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="An eval set: file, Hub id or builtin:contrast; repeatable."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of a Hub or builtin data set; test when not given.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help=f"{', '.join(KINDS)}; by the roles found when not given.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="ROLE=COLUMN where a column is not named as its role, ROLE=null to leave it out; repeatable."
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="ROLE=TEXT to put before each text of a role, for models that carry no prompts; repeatable. One that "
            "carries others is an error."
        ),
    ] = None,
    dims: Annotated[
        str | None,
        typer.Option(
            help="Evaluate on the first entries of the embeddings, too: numbers such as 384,128,64."
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file.")] = None,
    all_metrics: Annotated[
        bool, typer.Option("--all", help="Show every metric, not only the main one.")
    ] = False,
) -> None:
    """Compare models on the same data, side by side, with 95 % confidence intervals."""
    if (config is None) == (not data):
        raise CommandError("give either --config or --data")
    if config is not None and (split or task or column or prompt):
        raise CommandError(
            "--split, --task, --column and --prompt go with --data; a --config says these itself"
        )
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise CommandError(f"--json {json_file}: there is no folder {json_file.parent}")
    if json_file is not None and json_file.is_dir():
        raise CommandError(f"--json {json_file}: it is a folder; name a file in it")
    at_dims = _numbers(dims or "")
    columns = _pairs("--column", column or [], "ROLE=COLUMN, such as anchor=question")
    prompts: Mapping[str, str] = _pairs("--prompt", prompt or [], "ROLE=TEXT, such as 'anchor=query: '")
    quiet_libraries()
    from sbert_train.data.sieve import describe
    from sbert_train.evaluation.models import evaluate_models

    if config is not None:
        sets, tasks, prompts = _configured_eval_sets(config)
    else:
        sets, tasks = _named_eval_sets(data or [], split, task, columns)
    for one in sets:
        if one.account.kept < one.account.read:
            print(describe(one.name, one.account))
    comparison = evaluate_models(models, tasks, prompts=prompts, dims=at_dims)
    print_comparison(comparison, all_metrics=all_metrics)
    if json_file is not None:
        json_file.write_text(json.dumps(comparison.to_json(), indent=2) + "\n", encoding="utf-8")


def _configured_eval_sets(config: str) -> tuple[Any, Any, Mapping[str, str]]:
    """The eval sets of a configuration, their tasks, and the prompts by role."""
    from sbert_train.config import load_config
    from sbert_train.recipes import find_config
    from sbert_train.training.prepare import load_tasks

    settings = load_config(find_config(config))
    with settings.hiding_environment():
        return *load_tasks(settings.data.eval), settings.model.prompts


def _named_eval_sets(
    sources: Sequence[str], split: str | None, task: str | None, columns: Mapping[str, str]
) -> tuple[Any, Any]:
    """The eval sets that --data names, and their tasks; a role mapped to null is left out."""
    from sbert_train.evaluation.adhoc import load_eval_sets

    found = {role: None if column == "null" else column for role, column in columns.items()}
    return load_eval_sets(_named(sources), split=split, task=task, columns=found)


def _named(sources: Sequence[str]) -> dict[str, str]:
    """Name -> source, with the names that a configuration would give them."""
    from sbert_train.config.schema import name_of_source

    named: dict[str, str] = {}
    for source in sources:
        if source in named.values():
            raise CommandError(f"--data {source}: given twice; name each set once")
        first = named.setdefault(name_of_source(source), source)
        if first != source:
            raise CommandError(
                f"--data {source}: named {name_of_source(source)}, as {first} is; evaluate one after the other, or use "
                "a --config, where each set has a name"
            )
    return named


def _pairs(option: str, texts: Sequence[str], expected: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        role, sign, value = text.partition("=")
        if not (role and sign and value):
            raise CommandError(f"{option} {text}: expected {expected}")
        if role in pairs:
            raise CommandError(f"{option} {text}: {role} is {pairs[role]} already")
        pairs[role] = value
    return pairs


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")] if text else []
    except ValueError:
        raise CommandError(f"--dims {text}: expected numbers with commas, such as 384,128,64") from None
