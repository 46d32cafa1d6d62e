"""Folders of sentence-transformers, old layout and new, read and written; each thing a Layout cannot say is refused.

The folders are made by sentence-transformers 6.2 itself (new layout) and by `write_layout` (old layout).
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st
from torch import nn
from transformers import AutoModel

from sbert_train.errors import ModelError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.layout import (
    ACTIVATIONS,
    POOLING_NAMES,
    SIMILARITIES,
    DenseLayer,
    Layout,
    activation_path,
)
from sbert_train.model.pooling import POOLINGS
from sbert_train.model.read_layout import read_layout
from sbert_train.model.write_layout import write_layout
from tests.tiny import make_backbone, make_encoder, make_tokenizer

TEXTS = ["the cat sat on the mat", "", "dog", "a bird ate , and the fish ran under the river . " * 9]


def dense(inputs: int, outputs: int, activation: str = "tanh", *, bias: bool = True) -> DenseLayer:
    generator = torch.Generator().manual_seed(inputs + outputs)
    return DenseLayer(
        torch.randn(outputs, inputs, generator=generator) / 4,
        torch.randn(outputs, generator=generator) if bias else None,
        activation,
    )


def save_backbone(folder: Path, architecture: str = "bert", max_length: int = 64) -> Path:
    make_backbone(architecture).save_pretrained(folder)
    make_tokenizer(max_length).save_pretrained(folder)
    return folder


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder of the old layout with all kinds of modules."""
    folder = save_backbone(tmp_path / "old")
    layout = Layout(
        folder,
        "mean",
        head=(dense(32, 16), dense(16, 8, "gelu", bias=False)),
        normalize=True,
        max_length=24,
        prompts={"query": "the ", "document": ""},
        default_prompt_name="document",
        similarity="dot",
    )
    write_layout(folder, layout, width=32)
    return folder


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """A folder that sentence-transformers itself wrote, with all kinds of modules."""
    transformer = st.Transformer(str(save_backbone(tmp_path / "backbone")))
    transformer.max_seq_length = 24
    torch.manual_seed(0)
    model = SentenceTransformer(
        modules=[
            transformer,
            st.Pooling(32, "lasttoken"),
            st.Dense(32, 16, activation_function=nn.GELU()),
            st.Dropout(0.3),
            st.Dense(16, 8, bias=False, activation_function=nn.Identity()),
            st.Normalize(),
        ],
        prompts={"query": "the "},
        similarity_fn_name="euclidean",
        device="cpu",
    )
    model.save(str(tmp_path / "new"))
    return tmp_path / "new"


def test_the_new_layout_is_read_with_all_its_modules(new: Path) -> None:
    types = [module["type"] for module in json.loads((new / "modules.json").read_text())]
    assert types[0].startswith("sentence_transformers.base.")  # this is the new layout
    layout = read_layout(new)
    assert layout.backbone == new
    assert layout.pooling == "last"
    assert [(x.in_features, x.out_features, x.activation) for x in layout.head] == [
        (32, 16, "gelu"),
        (16, 8, "identity"),
    ]
    assert layout.head[0].bias is not None
    assert layout.head[1].bias is None
    assert layout.normalize
    assert layout.max_length == 24
    assert layout.prompts["query"] == "the "
    assert layout.similarity == "euclidean"


def test_what_is_written_is_read_back(old: Path) -> None:
    layout = read_layout(old)
    assert (layout.backbone, layout.pooling, layout.normalize, layout.max_length) == (old, "mean", True, 24)
    assert layout.prompts == {"query": "the ", "document": ""}
    assert (layout.default_prompt_name, layout.similarity, layout.do_lower_case) == ("document", "dot", False)
    written = (dense(32, 16), dense(16, 8, "gelu", bias=False))
    for read, expected in zip(layout.head, written, strict=True):
        assert torch.equal(read.weight, expected.weight)
        assert read.activation == expected.activation
        assert (read.bias is None) == (expected.bias is None)
        assert read.bias is None or expected.bias is None or torch.equal(read.bias, expected.bias)


def test_the_files_written_are_those_of_the_old_layout(old: Path) -> None:
    types = [module["type"] for module in json.loads((old / "modules.json").read_text())]
    kinds = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    assert types == [f"sentence_transformers.models.{kind}" for kind in kinds]
    assert json.loads((old / "sentence_bert_config.json").read_text()) == {
        "max_seq_length": 24,
        "do_lower_case": False,
    }
    assert json.loads((old / "1_Pooling" / "config.json").read_text()) == {
        "word_embedding_dimension": 32,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
        "pooling_mode_weightedmean_tokens": False,
        "pooling_mode_lasttoken": False,
        "include_prompt": True,
    }
    assert json.loads((old / "2_Dense" / "config.json").read_text()) == {
        "in_features": 32,
        "out_features": 16,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    assert (old / "4_Normalize").is_dir()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling_is_loaded_by_sentence_transformers_with_our_embeddings(
    tmp_path: Path, pooling: str
) -> None:
    ours = make_encoder(pooling=pooling, max_length=24, prompts={"query": "the cat "})
    ours.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert theirs.max_seq_length == 24
    assert len(ours.tokenize(TEXTS)[-1]) == 24  # the last text is cut
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)
    prompted = ours.encode(TEXTS, role="anchor")
    np.testing.assert_allclose(prompted, theirs.encode(TEXTS, prompt_name="query"), atol=1e-5)
    assert np.abs(prompted - ours.encode(TEXTS)).max() > 1e-3  # the prompt matters


@pytest.mark.parametrize("pooling", POOLING_NAMES)
def test_every_pooling_of_a_new_folder_is_loaded_by_us_with_its_embeddings(
    tmp_path: Path, pooling: str
) -> None:
    transformer = st.Transformer(str(save_backbone(tmp_path / "backbone", max_length=24)))
    theirs = SentenceTransformer(
        modules=[transformer, st.Pooling(32, POOLING_NAMES[pooling][1])], device="cpu"
    )
    theirs.save(str(tmp_path / "new"))
    ours = SentenceEncoder.load(tmp_path / "new", device="cpu")
    assert ours.pooling == pooling
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)


def test_head_prompt_and_normalisation_of_both_layouts_give_the_embeddings_of_sentence_transformers(
    old: Path, new: Path
) -> None:
    for folder in (old, new):
        ours = SentenceEncoder.load(folder, device="cpu")
        theirs = SentenceTransformer(str(folder), device="cpu")
        embeddings = ours.encode(TEXTS)
        assert embeddings.shape == (len(TEXTS), 8)
        np.testing.assert_allclose(embeddings, theirs.encode(TEXTS), atol=1e-5)
        np.testing.assert_allclose(ours.encode(TEXTS, role="anchor"), theirs.encode_query(TEXTS), atol=1e-5)


def test_every_activation_is_loaded_by_sentence_transformers_as_its_class(tmp_path: Path) -> None:
    folder = save_backbone(tmp_path / "model")
    for name, activation in ACTIVATIONS.items():
        write_layout(folder, Layout(folder, "mean", head=(dense(32, 8, name),)), width=32)
        assert type(st.Dense.load(str(folder / "2_Dense")).activation_function) is activation
        assert read_layout(folder).head[0].activation == name
        edit(folder / "2_Dense" / "config.json", activation_function=f"torch.nn.{activation.__name__}")
        assert read_layout(folder).head[0].activation == name


def test_the_tables_name_what_the_installed_sentence_transformers_knows() -> None:
    assert set(POOLING_NAMES) == set(POOLINGS)
    assert {new for _, new in POOLING_NAMES.values()} == set(st.Pooling.POOLING_MODES)
    assert set(SIMILARITIES) == set(SentenceTransformer.SUPPORTED_SIMILARITY_FN_NAMES)
    assert activation_path("tanh") == "torch.nn.modules.activation.Tanh"


def test_a_plain_transformers_folder_says_nothing_of_pooling(tmp_path: Path) -> None:
    layout = read_layout(save_backbone(tmp_path / "plain"))
    assert (layout.pooling, layout.head, layout.normalize, layout.max_length) == (None, (), False, 64)


def test_a_pooling_that_is_not_said_is_written_as_mean(tmp_path: Path) -> None:
    folder = save_backbone(tmp_path / "plain")
    write_layout(folder, read_layout(folder), width=32)
    assert read_layout(folder).pooling == "mean"


def test_a_backbone_in_a_sub_folder_is_found(old: Path) -> None:
    (old / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.move(old / name, old / "0_Transformer" / name)
    shutil.move(old / "sentence_bert_config.json", old / "0_Transformer" / "sentence_bert_config.json")
    modules = json.loads((old / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (old / "modules.json").write_text(json.dumps(modules))
    layout = read_layout(old)
    assert layout.backbone == old / "0_Transformer"
    assert layout.max_length == 24
    np.testing.assert_allclose(
        SentenceEncoder.load(old, device="cpu").encode(TEXTS),
        SentenceTransformer(str(old), device="cpu").encode(TEXTS),
        atol=1e-5,
    )


def test_a_folder_of_links_is_read_as_the_cache_of_the_hub_is_one(old: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    for file in old.rglob("*"):
        if file.is_file():
            link = links / file.relative_to(old)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    assert read_layout(links).head[1].out_features == 8


def test_lower_casing_is_read_and_written(old: Path) -> None:
    edit(old / "sentence_bert_config.json", do_lower_case=True)
    layout = read_layout(old)
    assert layout.do_lower_case
    write_layout(old, layout, width=32)
    assert json.loads((old / "sentence_bert_config.json").read_text())["do_lower_case"] is True


class TestMaxLength:
    """The figure that sentence-transformers uses, but never more tokens than the backbone has positions for."""

    @pytest.mark.parametrize(("architecture", "positions"), [("bert", 66), ("roberta", 65), ("mpnet", 64)])
    def test_a_tokenizer_without_a_limit_leaves_it_to_the_positions(
        self, tmp_path: Path, architecture: str, positions: int
    ) -> None:
        # RoBERTa counts from padding_idx + 1, which is 1 here and always 2 in MPNet.
        folder = save_backbone(tmp_path / "plain", architecture, max_length=int(1e30))
        layout = read_layout(folder)
        assert layout.max_length == positions
        longest = SentenceEncoder.load(folder, device="cpu").encode(["cat " * 90])
        assert np.isfinite(longest).all()

    def test_what_is_written_wins_over_the_tokenizer(self, old: Path) -> None:
        edit(old / "tokenizer_config.json", model_max_length=12)
        assert read_layout(old).max_length == 24
        edit(old / "sentence_bert_config.json", max_seq_length=None)
        assert read_layout(old).max_length == 12

    def test_more_than_the_positions_is_cut_to_them(self, old: Path) -> None:
        edit(old / "sentence_bert_config.json", max_seq_length=512)
        assert read_layout(old).max_length == 66

    def test_nothing_limits_a_backbone_without_positions(self, tmp_path: Path) -> None:
        folder = save_backbone(tmp_path / "plain", max_length=int(1e30))
        edit(folder / "config.json", max_position_embeddings=-1)
        assert read_layout(folder).max_length is None


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
