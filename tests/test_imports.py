"""The house stands: rooms know only those to their left, and what a command line needs first is light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sbert_train

PACKAGE = Path(sbert_train.__file__).parent
# A room may import those before it, and itself.
ORDER = (
    "errors",
    "paths",
    "streams",
    "recipes",
    "config",
    "data",
    "model",
    "objectives",
    "evaluation",
    "export",
    "reporting",
    "training",
    "commands",
    "cli",
    "__main__",
)
KNOW_THE_CONFIG = {"config", "training", "commands", "cli"}
LIGHT = (
    "sbert_train",
    "sbert_train.errors",
    "sbert_train.recipes",
    "sbert_train.config",
    "sbert_train.commands",
    "sbert_train.cli",
)
HEAVY = ("torch", "transformers", "datasets", "numpy", "scipy", "pandas", "sentence_transformers")
HELP_NEEDS_NONE_OF = (*HEAVY, "pydantic", "yaml", "pyarrow", "sklearn", "huggingface_hub", "tqdm")
NEEDLESS_FOR_MOST_RUNS = (
    "sentence_transformers",
    "sklearn.cluster",
    "tensorboard",
    "onnx",
    "onnxruntime",
    "matplotlib",
)


def room_of(module: str) -> str:
    """`sbert_train.data.batch` -> `data`; the package itself has no room."""
    return module.split(".")[1] if "." in module else ""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = ("sbert_train", *file.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def imports_of(name: str, tree: ast.Module) -> Iterator[str]:
    """Modules that are imported anywhere in a module, in functions and in TYPE_CHECKING blocks, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno} imports relatively; write the whole name"
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                inside = PACKAGE.joinpath(*whole.split(".")[1:])
                is_module = whole.startswith("sbert_train.") and (
                    inside.is_dir() or inside.with_suffix(".py").is_file()
                )
                yield whole if is_module else node.module


MODULES = dict(modules())


def test_every_room_has_its_place_in_the_order() -> None:
    assert len(MODULES) > 20
    assert {room_of(name) for name in MODULES} <= {*ORDER, ""}


@pytest.mark.parametrize("name", [name for name in MODULES if name != "sbert_train"])
def test_a_room_imports_only_those_to_its_left(name: str) -> None:
    allowed = set(ORDER[: ORDER.index(room_of(name)) + 1]) | {""}
    if room_of(name) not in KNOW_THE_CONFIG:
        allowed -= {"config"}
    ours = {one for one in imports_of(name, MODULES[name]) if one.split(".")[0] == "sbert_train"}
    assert {one for one in ours if room_of(one) not in allowed} == set()


def test_the_order_can_be_broken() -> None:
    broken = ast.parse(
        "def f():\n    from sbert_train.training import fit\n    from sbert_train import cli, __version__\n"
    )
    assert sorted(imports_of("sbert_train.data.batch", broken)) == [
        "sbert_train",
        "sbert_train.cli",
        "sbert_train.training.fit",
    ]


def test_nothing_of_sentence_transformers_is_imported() -> None:
    users = [
        name
        for name, tree in MODULES.items()
        for one in imports_of(name, tree)
        if one.startswith("sentence_transformers")
    ]
    assert users == []


def test_the_command_line_starts_without_loading_anything_heavy() -> None:
    code = f"import sys, {', '.join(LIGHT)}\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def loaded_after(code: str, names: tuple[str, ...]) -> set[str]:
    """Which of these modules a fresh process has loaded after some code."""
    code = f"import sys\n{code}\nprint('loaded:', *(name for name in {names} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_help_is_answered_without_any_library_that_training_needs() -> None:
    ask = (
        "from sbert_train.cli import app\nsys.argv = ['sbert-train', '--help']\n"
        "try:\n    app()\nexcept SystemExit:\n    pass"
    )
    assert loaded_after(ask, (*HELP_NEEDS_NONE_OF, "typer")) == {"typer"}


def test_a_run_loads_no_library_that_only_some_runs_need() -> None:
    assert loaded_after("import sbert_train.training.fit", (*NEEDLESS_FOR_MOST_RUNS, "torch")) == {"torch"}
