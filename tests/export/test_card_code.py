"""The code of a card, taken out of it as a reader would, gives the embeddings of the model itself."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sbert_train.export.card import CardFacts, model_card
from sbert_train.export.usage import PLACE, sides_of
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.model.layout import ACTIVATIONS
from sbert_train.model.pooling import POOLINGS
from tests.hub import LoopbackHub, hub
from tests.tiny import ARCHITECTURES, make_backbone, make_encoder, make_tokenizer, trained_head

__all__ = ["hub"]

TEXTS = ["the cat sat on the mat", "a dog", "near the river the small red bird never ate the two fish ."]
QUERY, DOCUMENT = "the red ", "a 'small' \"blue\" \\ ``` ~~~~ house "


def card(encoder: SentenceEncoder) -> str:
    return model_card(encoder, CardFacts("model", "base", None, (), (), "seed: 42\n"))


def code_of(text: str) -> list[str]:
    """The blocks of Python."""
    return [code for _, code in re.findall(r"^(~{4,})python\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)]


def executed(code: str, place: Path | str) -> dict[str, Any]:
    """The names that code leaves behind."""
    assert f'"{PLACE}"' in code
    names: dict[str, Any] = {}
    exec(code.replace(PLACE, str(place)), names)
    return names


def numbers(printed: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.(?:\d+(?:e[-+]\d+)?)?", printed)]


def check(encoder: SentenceEncoder, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run both blocks of a model's card and compare what they compute and print; the second one."""
    encoder.save(folder)
    theirs, plain = code_of(card(SentenceEncoder.load(folder)))
    shown = []
    for code in (theirs, plain):
        capsys.readouterr()
        names = executed(code, folder)
        shown.append(numbers(capsys.readouterr().out))
        for side in sides_of(encoder):
            expected = encoder.encode(side.texts, role=side.role)
            np.testing.assert_allclose(names[side.variable], expected, rtol=0, atol=1e-5)
    assert shown[0] == pytest.approx(shown[1], abs=2e-3) and shown[0], "the similarities are the same, too"
    return plain


def with_own_texts(encoder: SentenceEncoder, plain: str, folder: Path) -> None:
    """The function of the block, on texts whose words are in the vocabulary and of which one is cut."""
    encode = executed(plain, folder)["encode"]
    for side in sides_of(encoder):
        told = {"side": side.role} if "side" in encode.__code__.co_varnames else {}
        told |= {"prompt": side.prompt} if side.prompt else {}
        expected = encoder.encode(TEXTS, role=side.role)
        np.testing.assert_allclose(encode(TEXTS, **told), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("normalize", [False, True])
def test_with_every_pooling(
    pooling: str, normalize: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = make_encoder(pooling=pooling, normalize=normalize, max_length=10)
    with_own_texts(encoder, check(encoder, tmp_path, capsys), tmp_path)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_with_every_architecture(
    architecture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = make_encoder(architecture, pooling="weighted_mean", normalize=True)
    with_own_texts(encoder, check(encoder, tmp_path, capsys), tmp_path)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layers", [1, 2])
def test_with_a_head(
    activation: str, layers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = trained_head(HeadSpec(dim=8, layers=layers, activation=activation), 32)
    encoder = make_encoder(head=head, normalize=layers == 2)
    with_own_texts(encoder, check(encoder, tmp_path, capsys), tmp_path)


def test_with_two_heads_and_prompts_the_card_names_the_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = trained_head(HeadSpec(dim=8, layers=2, shared=False), 32)
    encoder = make_encoder(head=head, prompts={"query": QUERY, "document": DOCUMENT}, normalize=True)
    with_own_texts(encoder, check(encoder, tmp_path, capsys), tmp_path)
    text = card(encoder)
    assert "Queries and documents have a head each" in text and 'role="document"' in text
    theirs, plain = code_of(text)
    assert "encode_query" in theirs and "encode_document" in theirs
    assert '"query": [dense("2_Router/query_0_Dense", torch.tanh), dense("2_Router/query_1_Dense"' in plain
    assert "have a head each" not in card(make_encoder())


@pytest.mark.parametrize(
    ("prompts", "default", "names"),
    [
        ({"query": QUERY, "document": DOCUMENT}, None, ["queries", "documents"]),
        ({"query": QUERY}, None, ["queries", "documents"]),
        ({"document": DOCUMENT, "x": QUERY}, "x", ["queries", "documents"]),
        ({"sentence1": QUERY, "sentence2": DOCUMENT}, None, ["first", "second"]),
        ({"sentence2": DOCUMENT}, None, ["first", "second"]),
        ({"x": QUERY}, "x", ["embeddings"]),
        ({"x": QUERY, "query": ""}, None, ["embeddings"]),
    ],
)
def test_with_prompts(
    prompts: dict[str, str],
    default: str | None,
    names: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encoder = make_encoder(prompts=prompts, default_prompt_name=default)
    assert [side.variable for side in sides_of(encoder)] == names
    with_own_texts(encoder, check(encoder, tmp_path, capsys), tmp_path)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_with_every_similarity(similarity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(make_encoder(similarity=similarity), tmp_path, capsys)


def test_with_a_tokenizer_that_fills_up_on_the_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = make_tokenizer()
    tokenizer.padding_side = "left"
    encoder = SentenceEncoder(make_backbone(), tokenizer, pooling="cls", max_length=64)
    encoder.save(tmp_path)
    _, plain = code_of(card(encoder))
    assert 'padding_side="right"' in plain
    with_own_texts(encoder, plain, tmp_path)


def test_what_transformers_alone_cannot_do_is_not_claimed() -> None:
    class Custom(type(make_encoder().backbone)):  # type: ignore[misc]
        """A backbone whose code comes with the model."""

    encoder = make_encoder()
    assert len(code_of(card(encoder))) == 2
    encoder.backbone.__class__ = Custom
    assert len(code_of(card(encoder))) == 1 and "transformers alone" not in card(encoder)
    unpadded = make_encoder()
    unpadded.tokenizer.pad_token = None
    assert len(code_of(card(unpadded))) == 1


def test_the_line_for_sbert_train_runs(tmp_path: Path) -> None:
    for name, head in (("one", None), ("two", trained_head(HeadSpec(dim=8, shared=False), 32))):
        encoder = make_encoder(head=head)
        encoder.save(tmp_path / name)
        ours = re.search(r"`(from sbert_train import \w+)`, then `(.*?)`", card(encoder))
        assert ours is not None
        names: dict[str, Any] = {"texts": TEXTS}
        exec(f"{ours[1]}\nfound = {ours[2]}".replace(PLACE, str(tmp_path / name)), names)
        expected = encoder.encode(TEXTS, role=None if head is None else "query")
        np.testing.assert_allclose(names["found"], expected, rtol=0, atol=1e-5)


def test_with_the_id_of_the_model_on_the_hub(hub: LoopbackHub, tmp_path: Path) -> None:
    encoder = make_encoder(head=trained_head(HeadSpec(dim=8), 32), normalize=True)
    encoder.save(tmp_path / "model")
    shutil.copytree(tmp_path / "model", hub.root / "models" / "org" / "tuned")
    _, plain = code_of(card(encoder))
    saved = f"\ntorch.save(encode({TEXTS!r}), {str(tmp_path / 'found.pt')!r})\n"
    done = hub.run(plain.replace(PLACE, "org/tuned") + saved)
    assert done.returncode == 0, done.stderr[-2000:]
    assert any("2_Dense/model.safetensors" in request for request in hub.requests)
    found = torch.load(tmp_path / "found.pt", weights_only=True)
    np.testing.assert_allclose(found, encoder.encode(TEXTS), rtol=0, atol=1e-5)
