"""The commands: they translate arguments, call one function each, and print what it returns.

Imports of torch and its company are inside the commands, so that --help and mistakes are answered at once.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sbert_train import __version__
from sbert_train.errors import CommandError, Interrupted, SbertTrainError
from sbert_train.evaluation.kinds import KINDS
from sbert_train.streams import lasting_output

_UsageError: Any = typer.BadParameter.__mro__[1]
"""What typer raises for a command line that it cannot read; the module that has it changes with its version."""
_STARTED = time.monotonic()
_BY_CTRL_C = 130

app = typer.Typer(
    name="sbert-train",
    help="Fine-tune sentence-embedding encoders from one YAML file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
configs = typer.Typer(help="The recipes that ship with the package.", no_args_is_help=True)
app.add_typer(configs, name="configs")

ConfigOption = Annotated[
    str, typer.Option("--config", help="A YAML file, or the name of a recipe.", metavar="FILE")
]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Values in place of the file's, such as train.learning_rate=1e-5.",
                                     metavar="[KEY=VALUE]...")]  # fmt: skip


def main() -> None:
    """Run a command; what the user can mend is one line on stderr and exit code 2."""
    with lasting_output():
        sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        code = int(app(standalone_mode=False, prog_name="sbert-train") or 0)
        if code == _BY_CTRL_C:  # before a command does anything of its own about it
            print("sbert-train: stopped by Ctrl-C", file=sys.stderr)
        return code
    except SbertTrainError as error:
        print(f"sbert-train: {error}", file=sys.stderr)
        return 2
    except _UsageError as error:
        said = error.format_message().removesuffix(".")
        if said:  # not where the help was printed in its place
            command = error.ctx.command_path if error.ctx else "sbert-train"
            print(f"sbert-train: {said}; see `{command} --help`", file=sys.stderr)
        return 2
    except Interrupted as stopped:
        print(f"sbert-train: {stopped}", file=sys.stderr)
        return 128 + stopped.signal


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sbert-train {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Options that stand before a command."""


@app.command()
def fit(
    config: ConfigOption,
    overrides: Overrides = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Begin anew, also in place of a run with another configuration in the same output_dir.",
        ),
    ] = False,
    resume: Annotated[
        str,
        typer.Option(
            help="auto: go on from the newest whole checkpoint in output_dir, if there is one. never: from the "
            "beginning. Or the path of a checkpoint.",
            metavar="auto|never|PATH",
        ),
    ] = "auto",
    strict: Annotated[
        bool, typer.Option("--strict", help="A damaged checkpoint is an error; else an older one is taken.")
    ] = False,
    allow_changes: Annotated[
        list[str] | None,
        typer.Option(
            help="A key that may have another value than in the checkpoint, such as train.num_train_epochs; "
            "repeatable.",
            metavar="KEY",
        ),
    ] = None,
) -> None:
    """Fine-tune a model, and measure it against the one it came from."""
    from sbert_train.config import WrongValues, load_config
    from sbert_train.recipes import find_config

    try:
        settings = load_config(find_config(config), overrides or [])
    except WrongValues as error:
        # At once, for what follows takes some seconds.
        print(f"sbert-train: {error}", file=sys.stderr, flush=True)
        _quiet_libraries()
        from sbert_train.training.everything_wrong import what_else_is_wrong

        for line in what_else_is_wrong(error):
            print(line, file=sys.stderr)
        raise typer.Exit(2) from error
    _quiet_libraries()
    from sbert_train.training.fit import fit as run

    with settings.hiding_environment():
        result = run(
            settings,
            resume=resume,
            overwrite=overwrite,
            strict=strict,
            allow_changes=allow_changes or [],
            started=_STARTED,
        )
    if not result.first_process:
        return
    if result.comparison is not None:
        _print_comparison(result.comparison, also=result.selected_by)
    _print_next(result.base, result.folder.model)


@app.command(name="eval")
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
    _quiet_libraries()
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
    _print_comparison(comparison, all_metrics=all_metrics)
    if json_file is not None:
        json_file.write_text(json.dumps(comparison.to_json(), indent=2) + "\n", encoding="utf-8")


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="Folder, Hub id or package://module/folder.")],
    output: Annotated[Path, typer.Option("--output", help="Folder to write.", metavar="DIR")],
    to: Annotated[
        str, typer.Option("--to", help="sentence-transformers, onnx or onnx-int8.")
    ] = "sentence-transformers",
) -> None:
    """Write a model elsewhere, reload it in a fresh process, and compare before saying done."""
    _quiet_libraries()
    from sbert_train.export import export_model

    print(export_model(model, output, to=to))


@configs.command(name="list")
def list_configs() -> None:
    """List the recipes."""
    from sbert_train.recipes import list_recipes

    recipes = list_recipes()
    width = max(len(name) for name, _ in recipes)
    for name, summary in recipes:
        print(f"{name:{width}}  {summary}")


@configs.command(name="show")
def show_config(name: Annotated[str, typer.Argument(help="Name of a recipe.")]) -> None:
    """Print a recipe."""
    from sbert_train.recipes import show_recipe

    print(show_recipe(name), end="")


@configs.command(name="copy")
def copy_config(
    name: Annotated[str, typer.Argument(help="Name of a recipe.")],
    destination: Annotated[Path, typer.Argument(help="File or folder to copy it to.")] = Path(),
) -> None:
    """Copy a recipe, to be made your own."""
    from sbert_train.recipes import copy_recipe

    print(copy_recipe(name, destination))


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


def _print_next(base: str, model: Path) -> None:
    """What to do with a new model, in commands that run as they are."""
    from sbert_train.model.read_layout import read_layout

    two_heads = read_layout(model).document_head is not None
    form, place = ("sentence-transformers", "export") if two_heads else ("onnx", "onnx")
    arguments = '["Hello."], role="query"' if two_heads else '["Hello."]'
    print(f"The model is in {model}. Next:\n")
    print(f"  sbert-train eval {base} {model} --data my_pairs.csv")
    print(f"  sbert-train export {model} --to {form} --output {model.parent / place}")
    print(
        f"""  python -c 'from sbert_train import SentenceEncoder as E; print(E.load("{model}").encode({arguments}))'"""
    )


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")] if text else []
    except ValueError:
        raise CommandError(f"--dims {text}: expected numbers with commas, such as 384,128,64") from None


def _print_comparison(comparison: Any, *, all_metrics: bool = False, also: str | None = None) -> None:
    from sbert_train.evaluation.table import render

    Console().print(render(comparison, all_metrics=all_metrics, also=also))


def _quiet_libraries() -> None:
    """Our own lines say what happens; the libraries' bars and notes do not interleave with them."""
    import datasets
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.set_verbosity_error()
