"""What a model or a package consists of lies in its own folder: no path and no link leads out of it."""

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoModel

from sbert_train.errors import ModelError
from sbert_train.model.resolve import resolve_model
from tests.security.attacks import Marker, edit
from tests.security.conftest import Refusal, load
from tests.tiny import make_encoder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody's, in the form of a model, so that a path that leads there would find what it looks for."""
    make_encoder(seed=1, max_length=24).save(tmp_path / "outside")
    return tmp_path / "outside"


def export(refused: Refusal, model: Path | str) -> str:
    return refused("export", model, "--output", "exported")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("way", ["../outside/1_Pooling", "{}/1_Pooling", "2_Dense/../../outside/1_Pooling"])
def test_modules_of_another_folder_are_refused(
    model: Path, outside: Path, refused: Refusal, way: str
) -> None:
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["path"] = way.format(outside)
    assert (model / modules[1]["path"] / "config.json").is_file()  # it would be found
    (model / "modules.json").write_text(json.dumps(modules))
    assert "expected a folder within the model's" in export(refused, model)


@pytest.mark.parametrize(
    "named", ["../outside/model.safetensors", "{}/model.safetensors", "a/b.safetensors", 3]
)
def test_weights_of_another_folder_are_refused(
    model: Path, outside: Path, refused: Refusal, named: object
) -> None:
    shard = named.format(outside) if isinstance(named, str) else named
    names = [name for name, _ in make_encoder().backbone.named_parameters()]
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, shard)}
    (model / "model.safetensors").unlink()
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    if named == "../outside/model.safetensors":  # the premise: transformers reads what lies there
        loaded = AutoModel.from_pretrained(model, use_safetensors=True, trust_remote_code=False)
        theirs = load(outside).backbone.get_input_embeddings().weight
        assert bool((loaded.get_input_embeddings().weight == theirs).all())
    assert "expected safetensors files beside it" in export(refused, model)


def test_weights_that_a_configuration_names_are_refused(model: Path, outside: Path, refused: Refusal) -> None:
    names = [name for name, _ in make_encoder().backbone.named_parameters()]
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "../outside/model.safetensors")}
    (model / "other.safetensors.index.json").write_text(json.dumps(index))
    edit(model / "config.json", transformers_weights="other.safetensors.index.json")
    AutoModel.from_pretrained(model, use_safetensors=True, trust_remote_code=False)  # the premise: it is read
    assert "transformers_weights: expected no such key" in export(refused, model)


def file_elsewhere(model: Path, outside: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to(outside / "model.safetensors")


def relative_link(model: Path, outside: Path) -> None:
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").symlink_to(Path("..", "outside", "tokenizer.json"))


def folder_elsewhere(model: Path, outside: Path) -> None:
    shutil.rmtree(model / "1_Pooling")
    (model / "1_Pooling").symlink_to(outside / "1_Pooling")


def link_to_a_link(model: Path, outside: Path) -> None:
    (model / "hop").symlink_to(outside)
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").symlink_to(Path("hop", "tokenizer.json"))


def sibling_of_like_name(model: Path, outside: Path) -> None:
    shutil.copytree(outside, model.with_name("model2"))
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").symlink_to(model.with_name("model2") / "tokenizer.json")


@pytest.mark.parametrize(
    "link", [file_elsewhere, relative_link, folder_elsewhere, link_to_a_link, sibling_of_like_name]
)
def test_a_link_out_of_a_model_is_refused(
    model: Path, outside: Path, refused: Refusal, link: Callable[[Path, Path], None]
) -> None:
    link(model, outside)
    told = export(refused, model)
    assert "is a link out of the model's folder" in told and str(model) in told


def test_a_link_to_itself_is_refused(model: Path, refused: Refusal) -> None:
    (model / "loop").symlink_to("loop")
    assert "is a link out of the model's folder" in export(refused, model)


def test_links_within_a_model_and_to_its_folder_are_followed(model: Path, tmp_path: Path) -> None:
    (model / "weights").mkdir()
    (model / "model.safetensors").rename(model / "weights" / "model.safetensors")
    (model / "model.safetensors").symlink_to(Path("weights", "model.safetensors"))
    (tmp_path / "latest").symlink_to(model)
    assert load("latest").encode(["the cat"]).shape == (1, 8)


def as_in_the_cache(model: Path, repository: Path) -> Path:
    """A model as the Hub's cache keeps it: each file once in blobs/, and a link to it."""
    snapshot = repository / "snapshots" / "0123abcd"
    shutil.copytree(model, snapshot)
    (repository / "blobs").mkdir()
    for file in [file for file in snapshot.rglob("*") if file.is_file()]:
        blob = repository / "blobs" / "-".join(file.relative_to(snapshot).parts)
        file.rename(blob)
        file.symlink_to(os.path.relpath(blob, file.parent))
    return snapshot


def test_the_links_of_the_hubs_cache_are_followed_and_no_others_of_its_form(
    model: Path, outside: Path, tmp_path: Path, refused: Refusal
) -> None:
    snapshot = as_in_the_cache(model, tmp_path / "models--org--name")
    assert load(snapshot).encode(["the cat"]).shape == (1, 8)

    (snapshot / "stolen.json").symlink_to(outside / "tokenizer.json")
    assert "stolen.json is a link out" in export(refused, snapshot)
    (snapshot / "stolen.json").unlink()
    (snapshot.parents[1] / "blobs").rename(tmp_path / "elsewhere")
    (snapshot.parents[1] / "blobs").symlink_to(tmp_path / "elsewhere")  # or to the root of the disk
    assert "is a link out of the model's folder" in export(refused, snapshot)


@pytest.fixture
def package(tmp_path: Path, marker: Marker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with a model, whose code leaves the marker when it is imported."""
    folder = tmp_path / "site" / "shipped_model"
    make_encoder().save(folder / "model")
    (folder / "__init__.py").write_text(marker.code)
    (folder / "inner").mkdir()
    (folder / "inner" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return folder


def test_a_package_is_found_without_running_it(package: Path, marker: Marker, refused: Refusal) -> None:
    """To look for a module within a package, Python runs the package."""
    marker.require_works(lambda: importlib.util.find_spec("shipped_model.inner"))
    for name in [name for name in sys.modules if name.startswith("shipped_model")]:
        del sys.modules[name]
    assert load("package://shipped_model/model").dimension == 32
    for name in ("shipped_model.inner/model", "shipped_model.inner", "shipped_model.none/x"):
        assert "expected package://module/folder" in export(refused, f"package://{name}")
    for name in ("shipped_model/none", "shipped_model_2/model"):
        export(refused, f"package://{name}")
    assert not [name for name in sys.modules if name.startswith("shipped_model")]


@pytest.mark.parametrize("way", ["../../outside", "model/../../../outside", "/{}", "{}", "..\\outside"])
def test_a_path_out_of_a_package_is_refused(package: Path, outside: Path, refused: Refusal, way: str) -> None:
    assert f"package://shipped_model/{way.format(outside)}: " in export(
        refused, f"package://shipped_model/{way.format(outside)}"
    )


def test_a_link_out_of_a_package_is_refused(package: Path, outside: Path, refused: Refusal) -> None:
    (package / "linked").symlink_to(outside)
    assert "has no folder 'linked'" in export(refused, "package://shipped_model/linked")
    (package / "model" / "tokenizer.json").unlink()
    (package / "model" / "tokenizer.json").symlink_to(outside / "tokenizer.json")
    assert "tokenizer.json is a link out" in export(refused, "package://shipped_model/model")


def test_a_module_that_is_not_there_is_named(refused: Refusal) -> None:
    with pytest.raises(ModelError, match="the package no_such_module is not installed"):
        resolve_model("package://no_such_module/model")
