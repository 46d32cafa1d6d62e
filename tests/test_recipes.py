"""The recipes are found, never overwrite anything, and say what they promise: none of them can rot."""

import re
import shlex
from pathlib import Path

import pytest

from sbert_train import recipes
from sbert_train.config import RunConfig, dump_config, load_config
from sbert_train.data.locate import classify
from sbert_train.errors import ConfigError
from sbert_train.recipes import copy_recipe, find_config, list_recipes, recipes_folder, show_recipe
from sbert_train.training.arguments import training_arguments
from tests.stand_ins import FILES, missing, sets_of

NAMES = [name for name, _ in list_recipes()]
WIDEST = 120


def load_recipe(name: str, overrides: list[str] | None = None) -> RunConfig:
    return load_config(recipes_folder() / f"{name}.yaml", overrides or [], {})


def load_text(folder: Path, text: str) -> RunConfig:
    file = folder / "run.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, environ={})


def head_of(name: str) -> str:
    """The comment at the top of a recipe, without its marks."""
    lines = show_recipe(name).split("\n\n", 1)[0].splitlines()
    assert all(line.startswith("#") for line in lines)
    return "\n".join(line.removeprefix("#").strip() for line in lines)


def overrides_in(text: str) -> list[str]:
    """Every key.path=value that a text tells."""
    return re.findall(r"\b(?:data|engine|model|objective|train)\.[\w.]+=[^\s;)]*[^\s;).,]", text)


def test_the_recipes_of_this_version_are_there_in_alphabetical_order() -> None:
    assert NAMES == [
        "all_minilm_l6_v2",
        "all_mpnet_base_v2",
        "collapse",
        "distill",
        "frozen_head",
        "local_csv",
        "lora",
        "matryoshka",
        "nli",
        "nli_hard_negatives",
        "nli_then_stsb",
        "quickstart",
        "quora_duplicates",
        "sbert_softmax_nli",
        "stsb_cosent",
        "stsb_regression",
        "triplet_sections",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_begins_with_its_command_and_a_summary(name: str) -> None:
    command, summary, empty, *_ = show_recipe(name).splitlines()
    words = shlex.split(command.removeprefix("# "))
    assert words[:4] == ["sbert-train", "fit", "--config", f"configs/{name}.yaml"]
    assert find_config(words[3]).samefile(recipes_folder() / f"{name}.yaml")
    assert load_recipe(name, words[4:]) == load_recipe(name)  # what it tells besides is what the file says
    assert (len(words) > 4) == any(one.source in FILES for one in load_recipe(name).data.train)
    assert dict(list_recipes())[name] == summary.removeprefix("# ")
    assert summary.endswith(".") and empty == "#"


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_valid(name: str) -> None:
    config = load_recipe(name)
    assert config.output_dir == f"runs/{name}"
    assert config.seed == 42
    arguments = training_arguments(config, bf16=False)
    assert arguments.per_device_train_batch_size == config.train["per_device_train_batch_size"]
    assert arguments.learning_rate == config.train["learning_rate"]


@pytest.mark.parametrize("name", NAMES)
def test_every_model_and_data_set_of_a_recipe_has_a_stand_in(name: str) -> None:
    assert missing(load_recipe(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_no_wider_than_its_readers_windows(name: str) -> None:
    assert [line for line in show_recipe(name).splitlines() if len(line) > WIDEST] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_overrides_in_a_recipes_comments_are_valid(name: str) -> None:
    for override in overrides_in(head_of(name)):
        config = load_recipe(name, [override])
        assert config != load_recipe(name) or override in show_recipe(name).splitlines()[0]


def test_overrides_are_found_in_comments() -> None:
    found = {name: len(overrides_in(head_of(name))) for name in NAMES}
    assert found["stsb_regression"] == 5 and found["frozen_head"] == 2 and found["all_minilm_l6_v2"] == 2
    assert overrides_in("so (model.base=a/b-c). And train.max_steps=2, or x=3") == [
        "model.base=a/b-c",
        "train.max_steps=2",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_and_recipes_in_a_recipes_comments_are_there(name: str) -> None:
    comments = head_of(name)
    for other in re.findall(r"configs/(\w+)\.yaml", comments):
        assert other in NAMES
    for command in re.findall(r"(?m)^sbert-train eval .*$", comments):
        *_, model, _, data, _, split = shlex.split(command)
        assert model == f"runs/{name}/model"
        sets = [one for one in load_recipe(name).data.eval if one.source == data]
        assert sets and split == "test" and sets[0].split != split


def test_the_second_stage_begins_with_what_the_first_leaves() -> None:
    first, second = load_recipe("sbert_softmax_nli"), load_recipe("nli_then_stsb")
    assert second.model.base == f"{first.output_dir}/model"


def test_the_two_general_models_are_trained_on_the_same_data() -> None:
    one, other = load_recipe("all_minilm_l6_v2"), load_recipe("all_mpnet_base_v2")
    assert (one.data, one.objective, one.train) == (other.data, other.objective, other.train)
    assert len(one.data.train) == 23 and sum(part.weight for part in one.data.train) == 1848


@pytest.mark.parametrize("name", ["all_minilm_l6_v2", "all_mpnet_base_v2"])
def test_the_large_sets_left_in_comments_are_valid(name: str, tmp_path: Path) -> None:
    text = re.sub(r"(?m)^    # (?=- source: |- name: |  \w+: )", "    ", show_recipe(name))
    config = load_text(tmp_path, text)
    assert [one.name for one in config.data.train[23:]] == ["paq", "s2orc_citations", "s2orc_abstracts"]
    assert missing(config) == []


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


def test_what_frozen_head_leaves_in_comments_is_valid(tmp_path: Path) -> None:
    text, changes = re.subn(r"(?m)^( +)# (?=shared: )", r"\1", show_recipe("frozen_head"))
    assert changes == 1
    head = load_text(tmp_path, text).model.head
    assert head is not None and not head.shared


def test_the_sources_of_the_recipes_are_what_they_look_like() -> None:
    kinds: dict[str, set[str]] = {}
    for name in NAMES:
        for one in sets_of(load_recipe(name)):
            kinds.setdefault(type(classify(one.source)).__name__, set()).add(one.source)
    assert kinds.pop("Files") == set(FILES)
    assert kinds.pop("Builtin") == {"builtin:contrast"}
    assert all(source.count("/") == 1 for source in kinds.pop("HubId"))
    assert not kinds


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


@pytest.mark.parametrize("name", [name for name, _ in list_recipes()])
def test_the_configuration_that_a_run_writes_is_read_back_as_the_same(name: str, tmp_path: Path) -> None:
    config = load_config(find_config(name))
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize("name", ["none", "../pyproject", "", "NLI.yaml", "nli.yaml"])
def test_a_recipe_that_is_not_there_is_an_error_that_lists_those_that_are(name: str) -> None:
    with pytest.raises(ConfigError, match=f"no such recipe; recipes: {', '.join(NAMES)}$"):
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
