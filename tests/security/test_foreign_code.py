"""Python code that comes with a model runs only where the configuration says so, and then the plan says it loudly."""

import contextlib
import importlib
import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers.dynamic_module_utils
from transformers import AutoModel, AutoTokenizer

from sbert_train.errors import ModelError
from sbert_train.export.usage import PLACE, sides_of
from tests.export.test_card_code import code_of, executed
from tests.hub import LoopbackHub
from tests.security.attacks import ARCHITECTURE, Marker, bring_code, edit
from tests.security.conftest import Refusal, Roads, load
from tests.training.runs import run


@pytest.fixture(autouse=True)
def _own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where transformers puts the code that it runs."""
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})


def run_by_transformers(model: Path) -> None:
    AutoModel.from_pretrained(model, trust_remote_code=True)


@pytest.mark.parametrize("road", ["eval", "export", "base", "teacher", "guide"])
def test_a_model_that_needs_code_of_its_own_is_refused_and_the_key_named(
    model: Path, marker: Marker, roads: Roads, refused: Refusal, road: str
) -> None:
    bring_code(model, marker)
    edit(model / "sentence_bert_config.json", model_args={"trust_remote_code": True})
    marker.require_works(lambda: run_by_transformers(model))
    told = refused(*roads[road](model))
    assert "theirs.TheirModel" in told and "model.trust_remote_code" in told


def test_a_yes_on_the_standard_input_is_not_asked_for(
    model: Path, marker: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left to itself, transformers asks, and runs the code if what it reads says yes."""
    bring_code(model, marker)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    marker.require_works(lambda: AutoModel.from_pretrained(model))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        load(model)


def test_code_of_another_repository_is_not_fetched(model: Path, marker: Marker, refused: Refusal) -> None:
    bring_code(model, marker)
    elsewhere = {"AutoConfig": "org/other--theirs.TheirConfig", "AutoModel": "org/other--theirs.TheirModel"}
    edit(model / "config.json", auto_map=elsewhere)
    assert "org/other--theirs.TheirModel" in refused("export", model, "--output", model.parent / "out")


def test_an_architecture_that_transformers_has_is_taken_from_there(model: Path, marker: Marker) -> None:
    bring_code(model, marker)
    edit(model / "config.json", model_type="bert")
    marker.require_works(lambda: run_by_transformers(model))
    assert type(load(model).backbone).__module__ == "transformers.models.bert.modeling_bert"


def test_a_tokenizer_of_its_own_is_not_run(model: Path, marker: Marker) -> None:
    (model / "theirs.py").write_text(marker.code + ARCHITECTURE)
    file = model / "tokenizer_config.json"
    edit(file, auto_map={"AutoTokenizer": [None, "theirs.TheirTokenizer"]}, tokenizer_class="TheirTokenizer")
    marker.require_works(lambda: AutoTokenizer.from_pretrained(model, trust_remote_code=True))
    assert type(load(model).tokenizer).__module__.startswith("transformers.")
    trusted = load(model, trust_remote_code=True)
    assert type(trusted.tokenizer).__name__ == "TheirTokenizer"


def test_a_module_that_is_named_by_its_path_is_not_imported(
    model: Path, marker: Marker, refused: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model / "theirs.py").write_text(marker.code)
    monkeypatch.syspath_prepend(model)
    marker.require_works(lambda: importlib.import_module("theirs"))
    del sys.modules["theirs"]
    modules = json.loads((model / "modules.json").read_text())
    for reference in ("theirs.Normalize", "theirs", "sentence_transformers.theirs.Own", "os.system"):
        written = [*modules, {"idx": 9, "name": "9", "path": "", "type": reference}]
        (model / "modules.json").write_text(json.dumps(written))
        assert reference in refused("export", model, "--output", model.parent / "out")


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize(
    "value", ["org/kernel", "org/kernel@main:layer", "flash_attention_2", {"": "org/kernel"}]
)
def test_a_kernel_of_the_hub_is_not_asked_for(model: Path, refused: Refusal, key: str, value: object) -> None:
    edit(model / "config.json", **{key: value})
    if "org/kernel" in str(value):  # the premise: transformers goes for it; `kernels` would fetch and run it
        with pytest.raises(ImportError, match="kernels"):
            AutoModel.from_pretrained(model, trust_remote_code=False, use_safetensors=True)
    assert f"{key}: expected no such key" in refused("export", model, "--output", model.parent / "out")


def test_a_kernel_for_a_part_of_a_model_is_not_asked_for(model: Path, refused: Refusal) -> None:
    edit(model / "config.json", text_config={"attn_implementation": "org/kernel"})
    assert "text_config.attn_implementation" in refused("export", model, "--output", model.parent / "out")


def test_where_it_is_trusted_it_runs_and_is_told_first(
    model: Path, marker: Marker, roads: Roads, refused: Refusal, tmp_path: Path
) -> None:
    bring_code(model, marker)
    result, lines = run(tmp_path, model, model={"base": str(model), "trust_remote_code": True})
    assert marker.left
    marker.path.unlink()
    warning = f"code       WARNING: the Python code of {model} runs on this machine (model.trust_remote_code)"
    assert lines[0] == warning and lines[1].startswith("model ")
    assert (result.folder.model / "theirs.py").is_file()
    for road in ("eval", "export"):  # what was trusted once is not trusted for ever
        assert "model.trust_remote_code" in refused(*roads[road](result.folder.model))


def test_the_card_of_such_a_model_says_so_and_its_code_runs(
    model: Path, marker: Marker, tmp_path: Path
) -> None:
    bring_code(model, marker)
    result, _ = run(
        tmp_path, model, model={"base": str(model), "trust_remote_code": True}, train={"max_steps": 1}
    )
    text = (result.folder.model / "README.md").read_text()
    assert "Python code in its folder runs when it is loaded: read that first." in text
    (code,) = code_of(text)  # none for transformers alone
    found = executed(code, result.folder.model)["embeddings"]
    ours = re.search(r"`(from sbert_train import \w+)`, then `(.*?)`", text)
    assert ours is not None
    names: dict[str, Any] = {"texts": sides_of(load(result.folder.model, trust_remote_code=True))[0].texts}
    exec(f"{ours[1]}\nexpected = {ours[2]}".replace(PLACE, str(result.folder.model)), names)
    np.testing.assert_allclose(found, names["expected"], rtol=0, atol=1e-5)
    assert marker.left
    marker.path.unlink()


def test_nothing_is_told_where_nothing_is_trusted(tiny_model: Path, tmp_path: Path) -> None:
    assert run(tmp_path, tiny_model)[1][0].startswith("model ")


COMMANDS = """
import json, sys
from sbert_train.cli import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["sbert-train", *arguments]
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    print("code", code)
"""


@pytest.mark.slow
def test_a_model_of_the_hub_is_treated_alike(
    hub: LoopbackHub, model: Path, marker: Marker, roads: Roads
) -> None:
    """Its code is not even fetched unless it is trusted; then the plan names the revision."""
    whole = hub.root / "models" / "org" / "whole"
    shutil.copytree(model, whole)
    bring_code(model, marker)
    shutil.copytree(model, hub.root / "models" / "org" / "theirs")
    fit = ["train.max_steps=1", "model.base=org/theirs"]
    commands = [
        [*roads["eval"](Path("org/whole"))],  # the links of the Hub's cache are followed
        [*roads["eval"](Path("org/theirs"))],
        [*roads["export"](Path("org/theirs"))],
        [*roads["base"](model), *fit],
        [*roads["base"](model), *fit, "model.trust_remote_code=true"],
    ]
    done = hub.run(COMMANDS, json.dumps(commands[:-1]))
    codes = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("code ")]
    assert codes == ["0", "2", "2", "2"], done.stderr
    assert done.stderr.count("model.trust_remote_code=true") == 3
    assert not marker.left
    assert not [request for request in hub.requests if ".py" in request]
    snapshots = hub.home / "hub" / "models--org--whole" / "snapshots"
    assert next(snapshots.glob("*/config.json")).is_symlink(), (
        "the cache has no links: the first case shows nothing"
    )

    done = hub.run(COMMANDS, json.dumps(commands[-1:]))
    assert "code 0" in done.stdout.splitlines()[-1], done.stderr
    assert "WARNING: the Python code of org/theirs at its main branch" in done.stdout
    assert marker.left
    with contextlib.suppress(FileNotFoundError):
        marker.path.unlink()
