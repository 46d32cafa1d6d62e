"""Folders are read in both layouts, written in the old one, and mean the same to sentence-transformers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st

from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.layout import (
    ACTIVATIONS,
    POOLING_NAMES,
    SIMILARITIES,
    Layout,
    activation_path,
)
from sbert_train.model.pooling import POOLINGS
from sbert_train.model.read_layout import read_layout
from sbert_train.model.write_layout import write_layout
from tests.model.layouts import TEXTS, dense, edit, new, old, save_backbone

__all__ = ["new", "old"]
from tests.tiny import make_encoder


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
