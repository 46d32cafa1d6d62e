"""The encoder: loaded, saved and used, and equal to sentence-transformers on the way."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor
from transformers import AutoTokenizer

from sbert_train.errors import ModelError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.model.pooling import POOLINGS
from tests.tiny import ARCHITECTURES, make_backbone, make_encoder, make_tokenizer, trained_head

TEXTS = [
    "the cat sat on the mat",
    "A dog!",
    "",
    "the man fed the child and the woman , not the bird . " * 8,
    "unheard words only",
    "the cat sat on the mat",
    "rain",
]


def theirs(folder: Path, texts: list[str], **options: object) -> np.ndarray:
    model = SentenceTransformer(str(folder), device="cpu")
    return np.asarray(model.encode(texts, **options))  # type: ignore[call-overload]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sentence_transformers_gives_our_embeddings_of_a_saved_encoder(
    architecture: str, tmp_path: Path
) -> None:
    encoder = make_encoder(architecture, normalize=True)
    encoder.save(tmp_path)
    np.testing.assert_allclose(theirs(tmp_path, TEXTS), encoder.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(SentenceEncoder.load(tmp_path).encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("normalize", [False, True])
def test_every_pooling_head_and_length_survives_the_folder(
    pooling: str, normalize: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    head = trained_head(HeadSpec(dim=6, activation="tanh", layers=2, dropout=0.5), 32)
    encoder = make_encoder(pooling=pooling, normalize=normalize, head=head, max_length=12)
    encoder.save(tmp_path)
    found = theirs(tmp_path, TEXTS)
    assert found.shape == (len(TEXTS), 6)
    np.testing.assert_allclose(found, encoder.encode(TEXTS), atol=1e-5)
    again = SentenceEncoder.load(tmp_path)
    assert (again.pooling, again.normalize, again.max_length, again.dimension) == (pooling, normalize, 12, 6)
    np.testing.assert_allclose(again.encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_what_sentence_transformers_saves_loads_with_the_same_embeddings(
    pooling: str, tmp_path: Path
) -> None:
    from sentence_transformers.sentence_transformer import modules

    make_encoder().save(tmp_path / "ours")
    transformer = modules.Transformer(str(tmp_path / "ours"), max_seq_length=10)
    chain = [
        transformer,
        modules.Pooling(32, pooling_mode=pooling),
        modules.Dense(32, 5),
        modules.Normalize(),
    ]
    model = SentenceTransformer(
        modules=chain, device="cpu", prompts={"query": "the cat ", "document": "the dog "}
    )
    model.save(str(tmp_path / "theirs"))
    encoder = SentenceEncoder.load(tmp_path / "theirs")
    np.testing.assert_allclose(encoder.encode(TEXTS), np.asarray(model.encode(TEXTS)), atol=1e-5)
    np.testing.assert_allclose(
        encoder.encode(TEXTS, role="anchor"), np.asarray(model.encode_query(TEXTS)), atol=1e-5
    )
    np.testing.assert_allclose(
        encoder.encode(TEXTS, role="positive"), np.asarray(model.encode_document(TEXTS)), atol=1e-5
    )
    assert not np.allclose(encoder.encode(TEXTS, role="anchor"), encoder.encode(TEXTS), atol=1e-3)


def test_prompts_of_roles_are_those_of_queries_and_documents(tmp_path: Path) -> None:
    make_encoder().save(tmp_path / "base")
    prompts = {"anchor": "the cat ", "positive": "the dog ", "sentence1": "rain "}
    encoder = SentenceEncoder.load(tmp_path / "base", prompts=prompts)
    encoder.save(tmp_path / "tuned")
    again = SentenceEncoder.load(tmp_path / "tuned")
    asked = ["anchor", "positive", "negative", "sentence1", "sentence2", None]
    assert [again.prompt_for(role) for role in asked] == ["the cat ", "the dog ", "the dog ", "rain ", "", ""]
    np.testing.assert_allclose(again.encode(["a"], role="anchor"), encoder.encode(["the cat a"]), atol=1e-6)
    np.testing.assert_allclose(again.encode(["a"], prompt="big "), encoder.encode(["big a"]), atol=1e-6)
    np.testing.assert_allclose(
        theirs(tmp_path / "tuned", ["a"], prompt_name="query"),
        encoder.encode(["a"], role="anchor"),
        atol=1e-5,
    )


def test_the_order_of_texts_and_the_batch_size_do_not_matter(encoder: SentenceEncoder) -> None:
    whole = encoder.encode(TEXTS)
    assert len({len(ids) for ids in encoder.tokenize(TEXTS)}) > 3, "the texts differ in length"
    for batch_size in (1, 3):
        np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=batch_size), whole, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], whole, atol=1e-6)


@pytest.mark.parametrize("packing", ["packed", "sorted", "padded"])
def test_every_way_gives_the_same_embeddings(packing: str, encoder: SentenceEncoder) -> None:
    other = make_encoder(packing=packing)
    assert other.way == packing
    np.testing.assert_allclose(other.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)


def test_what_cannot_be_packed_is_an_error_that_names_the_key() -> None:
    with pytest.raises(
        ModelError, match=r"engine.packing is packed, but MPNetModel cannot run packed: .*; set it to auto"
    ):
        make_encoder("mpnet", packing="packed")


def test_encode_gives_numpy_or_torch_and_one_vector_for_a_string(encoder: SentenceEncoder) -> None:
    matrix, tensor = encoder.encode(["rain", "sun"]), encoder.encode(["rain", "sun"], convert_to="torch")
    assert matrix.dtype == np.float32 and isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(matrix, tensor.numpy())
    np.testing.assert_allclose(encoder.encode("rain"), matrix[0], atol=1e-6)
    assert encoder.encode([]).shape == (0, 32)
    normalized = encoder.encode(["rain"], normalize=True)
    assert np.linalg.norm(matrix[0]) != pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(normalized[0]) == pytest.approx(1, abs=1e-5)


def test_encode_is_without_dropout_and_leaves_the_mode_as_it_was(encoder: SentenceEncoder) -> None:
    encoder.train()
    assert any(isinstance(m, torch.nn.Dropout) and m.p > 0 for m in encoder.modules()), (
        "the premise: there is dropout"
    )
    np.testing.assert_array_equal(encoder.encode(TEXTS), encoder.encode(TEXTS))
    assert encoder.training


def test_a_progress_bar_shows_on_stderr(encoder: SentenceEncoder, capsys: pytest.CaptureFixture[str]) -> None:
    encoder.encode(TEXTS)
    assert "Encoding" not in capsys.readouterr().err
    encoder.encode(TEXTS, show_progress=True)
    assert "Encoding" in capsys.readouterr().err


def test_lower_casing_is_kept_in_the_tokenizer(tmp_path: Path) -> None:
    make_encoder().save(tmp_path / "base")
    file = tmp_path / "base" / "tokenizer.json"
    file.write_text(file.read_text().replace('"type": "Lowercase"', '"type": "NFC"'))
    config = tmp_path / "base" / "sentence_bert_config.json"
    cased = SentenceEncoder.load(tmp_path / "base")
    config.write_text(config.read_text().replace('"do_lower_case": false', '"do_lower_case": true'))
    uncased = SentenceEncoder.load(tmp_path / "base")
    assert not np.allclose(cased.encode(["THE CAT"]), cased.encode(["the cat"]))
    np.testing.assert_allclose(uncased.encode(["THE CAT"]), cased.encode(["the cat"]), atol=1e-6)
    uncased.save(tmp_path / "saved")
    np.testing.assert_allclose(theirs(tmp_path / "saved", ["THE CAT"]), cased.encode(["the cat"]), atol=1e-5)


def test_a_saved_model_tells_its_length_to_every_reader_and_can_be_read_by_others(tmp_path: Path) -> None:
    make_encoder(max_length=20).save(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).model_max_length == 20
    modes = {file.name: file.stat().st_mode for file in tmp_path.iterdir() if file.is_file()}
    assert modes["model.safetensors"] == modes["config.json"]


def test_a_stored_half_precision_is_trained_in_float32(tmp_path: Path) -> None:
    encoder = make_encoder()
    encoder.to(torch.bfloat16)
    encoder.save(tmp_path)
    assert {p.dtype for p in SentenceEncoder.load(tmp_path).parameters()} == {torch.float32}


def test_a_length_beyond_the_positions_is_refused(tiny_model: Path) -> None:
    with pytest.raises(ModelError, match=r"model.max_length is 67, but this model has 66 positions"):
        SentenceEncoder.load(tiny_model, max_length=67)
    assert SentenceEncoder.load(tiny_model, max_length=66).max_length == 66


def test_a_plain_transformers_folder_has_mean_pooling_and_no_normalisation(tmp_path: Path) -> None:
    make_backbone().save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    encoder = SentenceEncoder.load(tmp_path)
    assert (encoder.pooling, encoder.normalize, encoder.head, encoder.max_length) == ("mean", False, None, 64)
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs(tmp_path, TEXTS), atol=1e-5)


def test_a_new_head_takes_the_place_of_the_folders_own(tmp_path: Path) -> None:
    make_encoder(head=trained_head(HeadSpec(dim=6), 32)).save(tmp_path)
    encoder = SentenceEncoder.load(tmp_path, head=HeadSpec(dim=4, layers=2, dropout=0.1))
    assert encoder.dimension == 4
    assert isinstance(encoder.head, torch.nn.Sequential) and len(encoder.head) == 2


def test_a_folder_that_transformers_cannot_load_is_one_line(tiny_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"model_type": "bert"', '"model_type": "no-such-model"'))
    with pytest.raises(ModelError, match=r"has no architecture 'no-such-model'; a newer one") as error:
        SentenceEncoder.load(folder)
    assert "\n" not in str(error.value)


def _with_weights(tiny_model: Path, folder: Path, change: Callable[[dict[str, Tensor]], object]) -> Path:
    shutil.copytree(tiny_model, folder)
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_weights_of_another_model_are_refused_not_replaced_by_random_ones(
    tiny_model: Path, tmp_path: Path
) -> None:
    def rename(weights: dict[str, Tensor]) -> None:
        for name in list(weights):
            weights[f"other.{name}"] = weights.pop(name)

    folder = _with_weights(tiny_model, tmp_path / "renamed", rename)
    with pytest.raises(
        ModelError, match=r"its weights lack \d+ of those of BertModel \(embeddings\..*, \.\.\.\)"
    ):
        SentenceEncoder.load(folder)


def test_weights_without_a_pooler_are_whole(tiny_model: Path, tmp_path: Path) -> None:
    def drop_pooler(weights: dict[str, Tensor]) -> None:
        names = [name for name in weights if name.startswith("pooler.")]
        assert names, "the premise: there is one"
        for name in names:
            del weights[name]

    texts = ["the cat sat on the mat"]
    folder = _with_weights(tiny_model, tmp_path / "bare", drop_pooler)
    assert np.array_equal(
        SentenceEncoder.load(folder).encode(texts), SentenceEncoder.load(tiny_model).encode(texts)
    )


def test_weights_that_are_cut_short_are_one_line(tiny_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match=r"cut: transformers cannot load it: ") as caught:
        SentenceEncoder.load(folder)
    assert "\n" not in str(caught.value)


def test_encode_normalises_or_not_as_it_is_told(encoder: SentenceEncoder) -> None:
    for normalize in (True, False):
        encoder.normalize = normalize
        lengths = {
            told: float(np.linalg.norm(encoder.encode("the cat sat", normalize=told)))
            for told in (True, False, None)
        }
        assert lengths[True] == pytest.approx(1)
        assert lengths[False] != pytest.approx(1, abs=1e-3)
        assert lengths[None] == lengths[normalize]


def test_roles_of_one_prompt_must_agree(tiny_model: Path) -> None:
    agreed = SentenceEncoder.load(tiny_model, prompts={"positive": "passage: ", "negative": "passage: "})
    assert agreed.prompt_for("negative") == "passage: "
    with pytest.raises(
        ModelError, match=r"positive and negative share the prompt 'document': expected one text"
    ):
        SentenceEncoder.load(tiny_model, prompts={"positive": "a: ", "negative": "b: "})


def test_the_similarity_it_was_trained_for_is_saved(tiny_model: Path, tmp_path: Path) -> None:
    SentenceEncoder.load(tiny_model, similarity="dot").save(tmp_path / "dot")
    assert SentenceTransformer(str(tmp_path / "dot")).similarity_fn_name == "dot"
    assert SentenceEncoder.load(tmp_path / "dot").similarity == "dot"


def test_saving_does_not_name_our_attention(tmp_path: Path, encoder: SentenceEncoder) -> None:
    assert encoder.way == "packed"
    encoder.save(tmp_path)
    assert not [file for file in tmp_path.rglob("*.json") if "sbert_train_packed" in file.read_text()]
    assert not list(tmp_path.rglob("*.bin"))
