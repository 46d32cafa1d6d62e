"""The recipes are found, never overwrite anything, and say what they promise: none of them can rot."""

import re
from pathlib import Path

import pytest

from sbert_train import recipes
from sbert_train.config import RunConfig, load_config
from sbert_train.data.locate import classify
from sbert_train.errors import ConfigError
from sbert_train.recipes import copy_recipe, find_config, list_recipes, recipes_folder, show_recipe
from sbert_train.training.arguments import training_arguments

NAMES = [name for name, _ in list_recipes()]


def load_text(folder: Path, text: str) -> RunConfig:
    file = folder / "run.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, environ={})


def test_the_recipes_of_this_version_are_there() -> None:
    assert NAMES == ["local_csv", "nli", "quickstart", "stsb_regression"]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_begins_with_its_command_and_a_summary(name: str) -> None:
    command, summary, *_ = show_recipe(name).splitlines()
    assert re.fullmatch(rf"# sbert-train fit --config configs/{name}\.yaml( \S+=\S+)*", command)
    assert dict(list_recipes())[name] == summary.removeprefix("# ")
    assert summary.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_valid(name: str) -> None:
    config = load_config(recipes_folder() / f"{name}.yaml", environ={})
    assert config.output_dir == f"runs/{name}"
    assert training_arguments(config, bf16=False).per_device_train_batch_size in (32, 64)


@pytest.mark.parametrize("name", ["local_csv", "nli", "stsb_regression"])
def test_the_overrides_in_a_recipes_comments_are_valid(name: str) -> None:
    comments = " ".join(re.findall(r"(?m)^#.*$", show_recipe(name)))
    overrides = re.findall(r"\S+=\S+", comments)
    assert len(overrides) >= 1
    config = load_config(recipes_folder() / f"{name}.yaml", overrides, {})
    assert config != load_config(recipes_folder() / f"{name}.yaml", environ={}) or name == "local_csv"


def test_what_local_csv_leaves_in_comments_is_valid(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^( +)# (?=(- )?\w+: )", r"\1", show_recipe("local_csv")).replace("eval: []", "eval:")
    text = re.sub(r"(?m)^( +)#   (?=\w+: )", r"\1  ", text)
    config = load_text(tmp_path, text)
    assert config.data.train[0].columns == {"anchor": "question", "positive": "answer"}
    assert config.data.train[0].where == {"lang": "en"}
    assert [(one.source, one.task) for one in config.data.eval] == [
        ("dev.csv", "sts"),
        ("dev_pairs.csv", "retrieval"),
    ]
    assert config.data.eval[0].score_range == (0, 5)


def test_the_sources_of_the_recipes_are_what_they_look_like() -> None:
    kinds: dict[str, str] = {}
    for name in NAMES:
        data = load_config(recipes_folder() / f"{name}.yaml", environ={}).data
        kinds |= {one.source: type(classify(one.source)).__name__ for one in (*data.train, *data.eval)}
    assert kinds == {
        "pairs.csv": "Files",
        "stanfordnlp/snli": "HubId",
        "nyu-mll/multi_nli": "HubId",
        "sentence-transformers/stsb": "HubId",
        "builtin:contrast": "Builtin",
    }


def test_a_recipe_is_copied_and_never_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert copy_recipe("nli", tmp_path) == tmp_path / "nli.yaml"
    assert copy_recipe("nli", tmp_path / "mine.yaml").read_text(encoding="utf-8") == show_recipe("nli")
    (tmp_path / "mine.yaml").write_text("changed", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.yaml: exists already and is not overwritten"):
        copy_recipe("nli", tmp_path / "mine.yaml")
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == "changed"
    with pytest.raises(ConfigError, match=r"there is no folder .*none; make it first"):
        copy_recipe("nli", tmp_path / "none" / "nli.yaml")
    monkeypatch.chdir(tmp_path / ".")
    (tmp_path / "nli.yaml").unlink()
    assert copy_recipe("nli") == Path("nli.yaml")


@pytest.mark.parametrize("name", ["none", "../pyproject", "", "NLI.yaml", "nli.yaml"])
def test_a_recipe_that_is_not_there_is_an_error_that_lists_those_that_are(name: str) -> None:
    with pytest.raises(
        ConfigError, match="no such recipe; recipes: local_csv, nli, quickstart, stsb_regression"
    ):
        show_recipe(name)


def test_a_config_is_a_file_or_else_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = recipes_folder() / "nli.yaml"
    for asked in ("nli", "nli.yaml", "configs/nli.yaml", "configs/nli"):
        assert find_config(asked) == shipped
    (tmp_path / "nli.yaml").touch()
    assert find_config("nli.yaml") == Path("nli.yaml")
    assert find_config(shipped) == shipped
    with pytest.raises(ConfigError, match=r"^configs/none\.yaml: no such file and no such recipe"):
        find_config("configs/none.yaml")
    for asked in ("other/nli.yaml", "nli.json", "../configs/nli.yaml"):
        with pytest.raises(ConfigError, match="no such file; `sbert-train configs list`"):
            find_config(asked)


def test_an_installed_package_has_its_recipes_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "sbert_train"
    (package / "configs").mkdir(parents=True)
    (package / "configs" / "mine.yaml").write_text("# command\n# Mine.\n", encoding="utf-8")
    monkeypatch.setattr(recipes, "_HERE", package)
    assert list_recipes() == [("mine", "Mine.")]
