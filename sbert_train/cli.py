"""The command line: the commands by their names, and the one boundary of their errors."""

import sys
from typing import Annotated, Any

import typer

from sbert_train import __version__
from sbert_train.commands.check import check
from sbert_train.commands.compare import compare
from sbert_train.commands.configs import configs
from sbert_train.commands.evaluate import evaluate
from sbert_train.commands.export import export
from sbert_train.commands.fit import fit
from sbert_train.errors import Interrupted, SbertTrainError
from sbert_train.streams import lasting_output

_UsageError: Any = typer.BadParameter.__mro__[1]
"""What typer raises for a command line that it cannot read; the module that has it changes with its version."""
_BY_CTRL_C = 130

app = typer.Typer(
    name="sbert-train",
    help="Fine-tune sentence-embedding encoders from one YAML file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(name="fit")(fit)
app.command(name="check")(check)
app.command(name="eval")(evaluate)
app.command(name="export")(export)
app.command(name="compare")(compare)
app.add_typer(configs, name="configs")


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
