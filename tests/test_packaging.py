"""What is built is whole: the wheel has the recipes and the embedded data, and works where no checkout is."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import sbert_train

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_declared_dependency_is_pinned_for_ci() -> None:
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    }
    declared = [
        *PROJECT["dependencies"],
        *(one for extra in PROJECT["optional-dependencies"].values() for one in extra),
    ]
    names = {one.split(">")[0].split("=")[0].split("[")[0].lower() for one in declared} - {"sbert-train"}
    assert len(names) > 20
    assert names - pinned == set()


def test_the_constraints_name_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [
        line for line in lines if not line.startswith("#") and (line.count("==") != 1 or "+" in line)
    ] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a user builds it: the source archive from the checkout, and the wheel from the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel_has_the_recipes_and_the_data_and_stays_small(wheel: Path) -> None:
    assert wheel.name == f"sbert_train-{sbert_train.__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    for recipe in (ROOT / "configs").glob("*.yaml"):
        assert f"sbert_train/configs/{recipe.name}" in names
    sources = {
        f"sbert_train/{file.relative_to(ROOT / 'sbert_train').as_posix()}"
        for file in (ROOT / "sbert_train").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert sources <= names
    assert not [name for name in names if name.startswith(("tests/", "runs/", "benchmarks/"))]
    assert wheel.stat().st_size < 1_500_000


@pytest.mark.slow
def test_an_installed_wheel_finds_its_recipes_and_its_data(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(installed),
    ]
    subprocess.run([*command, str(wheel)], check=True)
    code = """
import json, sbert_train
from sbert_train.config import load_config
from sbert_train.data.sources import load_set
from sbert_train.recipes import find_config, list_recipes
load_config(find_config("configs/quickstart.yaml"))
rows = load_set("contrast", "builtin:contrast", split="test").rows
print(json.dumps([sbert_train.__file__, [name for name, _ in list_recipes()], len(rows)]))
"""
    environment = {"PYTHONPATH": str(installed), "HF_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, names, rows = json.loads(done.stdout.splitlines()[-1])
    assert Path(where).is_relative_to(installed)
    assert names == sorted(file.stem for file in (ROOT / "configs").glob("*.yaml"))
    assert rows >= 1000
