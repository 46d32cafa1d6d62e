"""What a layout cannot say, and what is broken, is refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sentence_transformers
import torch
from transformers import AutoModel

from sbert_train.errors import ModelError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.read_layout import read_layout
from tests.model.layouts import edit, new, old

__all__ = ["new", "old"]


def refusal(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_layout(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def set_modules(folder: Path, *modules: tuple[str, str]) -> None:
    entries = [{"idx": i, "name": str(i), "path": p, "type": t} for i, (p, t) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(entries))


ROOT = ("", "sentence_transformers.models.Transformer")


POOLING = ("1_Pooling", "sentence_transformers.models.Pooling")


DENSE = ("2_Dense", "sentence_transformers.models.Dense")


ROUTER = ("2_Router", "sentence_transformers.models.Router")


NORMALIZE = ("4_Normalize", "sentence_transformers.models.Normalize")


@pytest.mark.parametrize(
    "kind", ["LSTM", "CNN", "Asym", "WeightedLayerPooling", "StaticEmbedding", "LayerNorm"]
)
def test_a_module_that_cannot_be_said_is_named(old: Path, kind: str) -> None:
    set_modules(old, ROOT, POOLING, ("5_X", f"sentence_transformers.models.{kind}"))
    assert f"sentence_transformers.models.{kind}" in refusal(old)


def test_a_module_of_the_model_itself_is_not_run(old: Path) -> None:
    set_modules(old, ROOT, POOLING, ("5_X", "my_code.Pooling"))
    assert "my_code.Pooling" in refusal(old)


@pytest.mark.parametrize(
    "modules",
    [
        (ROOT,),
        (POOLING, ROOT),
        (ROOT, POOLING, NORMALIZE, DENSE),
        (ROOT, DENSE, POOLING),
        (ROOT, POOLING, NORMALIZE, NORMALIZE),
        (ROOT, POOLING, ROUTER, DENSE),
        (ROOT, POOLING, DENSE, ROUTER),
        (ROOT, POOLING, ROUTER, ROUTER),
        (ROUTER, NORMALIZE),
        (),
    ],
)
def test_another_order_of_modules_is_refused(old: Path, modules: tuple[tuple[str, str], ...]) -> None:
    set_modules(old, *modules)
    expected = "expected Transformer, Pooling, any number of Dense or one Router, Normalize or nothing"
    assert expected in refusal(old)


@pytest.mark.parametrize("path", ["../other/1_Pooling", "/etc", "a/../../b", "..\\b", "C:\\b"])
def test_a_module_path_that_leaves_the_folder_is_refused(old: Path, path: str) -> None:
    set_modules(old, ROOT, (path, POOLING[1]))
    message = refusal(old)
    assert "sentence_transformers.models.Pooling" in message
    assert json.dumps(path) in message


@pytest.mark.parametrize("text", ['{"a": 1}', '[{"type": "x"}]', "[3]", "[", ""])
def test_a_broken_list_of_modules_is_refused(old: Path, text: str) -> None:
    (old / "modules.json").write_text(text)
    assert str(old / "modules.json") in refusal(old)


def test_pickled_weights_are_refused_and_named(old: Path) -> None:
    torch.save({}, old / "2_Dense" / "pytorch_model.bin")
    (old / "2_Dense" / "model.safetensors").unlink()
    message = refusal(old)
    assert "2_Dense" in message
    assert "found pytorch_model.bin" in message
    (old / "model.safetensors").rename(old / "pytorch_model.bin")
    assert f"{old}: expected model.safetensors, found pytorch_model.bin" in refusal(old)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    assert "has no config.json" in refusal(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "holds an adapter without its model: merge it into the base model first" in refusal(tmp_path)
    (tmp_path / "adapter_config.json").unlink()
    (tmp_path / "config.json").write_text("{}")
    assert "expected model.safetensors, found no weights" in refusal(tmp_path)


def test_an_adapter_beside_a_model_is_refused_and_never_loaded(old: Path) -> None:
    """What the model is would depend on whether peft is installed."""
    config = {"peft_type": "LORA", "target_modules": ["query"], "base_model_name_or_path": str(old)}
    (old / "adapter_config.json").write_text(json.dumps(config))
    torch.save({"lora": torch.zeros(1)}, old / "adapter_model.bin")
    with pytest.raises(OSError, match="adapter_model"):
        AutoModel.from_pretrained(old, use_safetensors=True)  # the premise: transformers goes for it
    assert "holds an adapter beside its model: merge it into the model first" in refusal(old)
    with pytest.raises(ModelError, match="holds an adapter beside its model"):
        SentenceEncoder.load(old, device="cpu")


def test_a_file_that_is_missing_or_no_object_is_named(old: Path) -> None:
    (old / "2_Dense" / "config.json").write_text("[]")
    assert "expected a JSON object" in refusal(old)
    (old / "1_Pooling" / "config.json").unlink()
    assert f"{old / '1_Pooling' / 'config.json'} is missing" in refusal(old)


@pytest.mark.parametrize(
    ("file", "changes", "named"),
    [
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "module Pooling: expected one of"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "found []"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, 'found ["cls", "mean"]'),
        ("1_Pooling/config.json", {"pooling_mode": "median"}, 'found ["median"]'),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt of module Pooling"),
        ("1_Pooling/config.json", {"word_embedding_dimension": None}, "embedding_dimension"),
        ("1_Pooling/config.json", {"word_embedding_dimension": 48}, "expected 48; found 32"),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, "module_input_name"),
        ("2_Dense/config.json", {"use_residual": True}, "use_residual of module Dense"),
        ("2_Dense/config.json", {"activation_function": "os.system"}, 'found "os.system"'),
        ("2_Dense/config.json", {"out_features": 17}, "module Dense: expected"),
        ("2_Dense/config.json", {"bias": False}, "linear.bias"),
        ("sentence_bert_config.json", {"max_seq_length": "24"}, "max_seq_length"),
        (
            "sentence_bert_config.json",
            {"transformer_task": "fill-mask"},
            "transformer_task of module Transformer",
        ),
        ("sentence_bert_config.json", {"query_length": 32}, "query_length of module Transformer"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, 'found "SparseEncoder"'),
        ("config_sentence_transformers.json", {"truncate_dim": 4}, "truncate_dim"),
        ("config_sentence_transformers.json", {"prompts": {"query": 3}}, "prompts"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "default_prompt_name"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "maxsim"}, "similarity_fn_name"),
    ],
)
def test_what_a_layout_cannot_say_is_refused(
    old: Path, file: str, changes: Mapping[str, Any], named: str
) -> None:
    edit(old / file, **changes)
    message = refusal(old)
    assert str(old) in message
    assert named in message


def test_a_normalisation_of_tokens_is_refused(new: Path) -> None:
    edit(new / "5_Normalize" / "config.json", module_input_name="token_embeddings")
    assert "module_input_name" in refusal(new)


def test_leaving_the_prompt_out_is_accepted_where_there_is_no_prompt(old: Path) -> None:
    edit(old / "1_Pooling" / "config.json", include_prompt=False)
    edit(old / "config_sentence_transformers.json", prompts={"query": ""}, default_prompt_name=None)
    assert read_layout(old).prompts == {"query": ""}


def test_a_damaged_weights_file_is_named(old: Path) -> None:
    (old / "2_Dense" / "model.safetensors").write_bytes(b"\x00" * 40)
    assert f"{old / '2_Dense' / 'model.safetensors'} is not a safetensors file" in refusal(old)


def test_the_written_version_is_older_than_the_reader_so_that_it_does_not_warn(old: Path) -> None:
    config = json.loads((old / "config_sentence_transformers.json").read_text())
    written = config["__version__"]["sentence_transformers"]
    assert [int(n) for n in written.split(".")] < [
        int(n) for n in sentence_transformers.__version__.split(".")
    ]
