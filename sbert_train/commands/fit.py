"""sbert-train fit."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sbert_train.commands.options import ConfigOption, Overrides
from sbert_train.commands.printing import print_comparison, quiet_libraries
from sbert_train.commands.settings import load_settings
from sbert_train.errors import ConfigError

_STARTED = time.monotonic()


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
    find_lr: Annotated[
        bool,
        typer.Option(
            "--find-lr",
            help="Train nothing: try growing learning rates for 100 steps, suggest one, and write find_lr.json and "
            "find_lr.svg to output_dir.",
        ),
    ] = False,
) -> None:
    """Fine-tune a model, and measure it against the one it came from."""
    if find_lr and (overwrite or strict or allow_changes or resume != "auto"):
        raise ConfigError(
            "--find-lr trains nothing, so that it takes none of --overwrite, --resume, --strict and --allow-changes; "
            "leave them out"
        )
    settings = load_settings(config, overrides)
    quiet_libraries()
    if find_lr:
        _find_lr(settings, config, overrides or [])
        return
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
        print_comparison(result.comparison, also=result.selected_by)
    print(f"The report of the run is {result.folder.page}.")
    _print_next(result.base, result.folder.model)


def _find_lr(settings: Any, config: str, overrides: list[str]) -> None:
    """Try learning rates, and print what came of it."""
    from sbert_train.training import find_lr

    with settings.hiding_environment():
        found = find_lr.find_lr(settings)
        others = [one for one in overrides if not one.startswith("train.learning_rate=")]
        if found.first_process:
            print("\n".join(find_lr.summary(found, shlex.join([str(config), *others]))))


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
