"""The configurations that ship with the package: find, list, show, copy."""

import shutil
from difflib import get_close_matches
from pathlib import Path

from sbert_train.errors import ConfigError

_HERE = Path(__file__).parent


def recipes_folder() -> Path:
    """Inside the installed package, or beside it in a checkout."""
    installed = _HERE / "configs"
    return installed if installed.is_dir() else _HERE.parent / "configs"


def list_recipes() -> list[tuple[str, str]]:
    """(name, one-line summary) of each recipe, sorted by name; the summary is the second line of its file."""
    files = sorted(recipes_folder().glob("*.yaml"))
    return [(file.stem, file.read_text(encoding="utf-8").splitlines()[1].lstrip("# ")) for file in files]


def show_recipe(name: str) -> str:
    """The text of a recipe.

    Raises:
        ConfigError: there is none of that name.
    """
    return _recipe(name).read_text(encoding="utf-8")


def copy_recipe(name: str, destination: str | Path | None = None) -> Path:
    """Copy a recipe to a file, or into a folder under its own name; the file that was written.

    Args:
        destination: None is the working directory.

    Raises:
        ConfigError: there is no such recipe or no such folder, or the file exists already.
    """
    source = _recipe(name)
    target = Path(destination or ".")
    if target.is_dir():
        target /= source.name
    if not target.parent.is_dir():
        raise ConfigError(f"{target}: there is no folder {target.parent}; make it first")
    try:
        with source.open("rb") as original, target.open("xb") as copy:
            shutil.copyfileobj(original, copy)
    except FileExistsError:
        raise ConfigError(f"{target}: exists already and is not overwritten; name another file") from None
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def find_config(path_or_name: str | Path) -> Path:
    """The file that `--config` names: an existing file, else a recipe by its name, as `nli` or `configs/nli.yaml`.

    Raises:
        ConfigError: there is neither.
    """
    path = Path(path_or_name)
    if path.exists():
        return path
    names = (path.name, f"configs/{path.name}")
    if path.as_posix() in names and path.suffix in ("", ".yaml", ".yml"):
        return _recipe(path.stem, asked=str(path))
    raise ConfigError(
        f"{path}: no such file; `sbert-train configs list` names the recipes that ship with sbert-train"
    )


def _recipe(name: str, asked: str | None = None) -> Path:
    file = recipes_folder() / f"{name}.yaml"
    known = [known for known, _ in list_recipes()]
    if name not in known:
        close = get_close_matches(name, known, n=1)
        guess = f" (did you mean {close[0]}?)" if close else ""
        raise ConfigError(
            f"{asked or name}: no such file and no such recipe{guess}; recipes: {', '.join(known)}"
        )
    return file
