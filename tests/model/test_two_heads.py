"""One backbone with a head for queries and a head for documents: trained, saved and read as sentence-transformers does.

Its name of such a head is a Router with two routes.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st
from torch import nn

from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.errors import ModelError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec, TwoHeads, make_head
from sbert_train.model.layout import ROUTER_CONFIG
from sbert_train.model.read_layout import read_layout
from sbert_train.model.roles import SIDE_OF_ROLE
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
from tests.tiny import make_encoder, trained_head

TEXTS = ["the cat sat on the mat", "A dog!", "", "rain and sun " * 30]


def make_two(layers: int = 2, dropout: float = 0.0, **options: Any) -> SentenceEncoder:
    torch.manual_seed(1)
    spec = HeadSpec(dim=6, layers=layers, dropout=dropout, shared=False)
    return make_encoder(head=trained_head(spec, 32), **options)


def make_batch(encoder: SentenceEncoder) -> TextBatch:
    """Two rows with a negative each; "the cat sat" is an anchor and a positive, "a dog" a positive and a negative."""
    rows = [("the cat sat", "a dog", "a bird ate near the river"), ("rain", "the cat sat", "a dog")]
    return collate(
        [
            {
                "anchor": encoder.tokenize([anchor])[0],
                "positive": encoder.tokenize([positive])[0],
                "negative": encoder.tokenize([negative]),
            }
            for anchor, positive, negative in rows
        ]
    )


def test_two_new_heads_begin_alike_and_each_has_its_own_weights() -> None:
    head = make_head(HeadSpec(dim=6, layers=2, shared=False), 32)
    assert isinstance(head, TwoHeads)
    for query, document in zip(head.query.parameters(), head.document.parameters(), strict=True):
        assert torch.equal(query, document) and query is not document


@pytest.mark.parametrize("layers", [1, 2])
def test_a_new_head_keeps_what_the_encoder_knows(layers: int) -> None:
    vectors = torch.randn(9, 32)
    in_full, shorter = (make_head(HeadSpec(dim, "identity", layers=layers), 32) for dim in (32, 8))
    assert isinstance(in_full, nn.Sequential) and isinstance(shorter, nn.Sequential)
    torch.testing.assert_close(in_full(vectors) @ in_full(vectors).T, vectors @ vectors.T)
    rows = shorter(torch.eye(32)).T  # (8, 32): without a bias, the product of the weights
    torch.testing.assert_close(
        rows @ rows.T, torch.eye(8), msg="a projection has orthogonal rows of length 1"
    )
    assert not any(weights.any() for name, weights in in_full.named_parameters() if name.endswith("bias"))
    assert not torch.equal(in_full(vectors), vectors), "in a random direction"


def test_each_role_has_the_head_of_its_side() -> None:
    encoder = make_two().eval()
    of_side = {side: encoder.encode(TEXTS, role=side) for side in ("query", "document")}
    assert np.abs(of_side["query"] - of_side["document"]).max() > 0.1
    assert set(SIDE_OF_ROLE) == {"anchor", "positive", "negative", "sentence1", "sentence2"}
    for role, side in SIDE_OF_ROLE.items():
        np.testing.assert_array_equal(encoder.encode(TEXTS, role=role), of_side[side])
    assert SIDE_OF_ROLE["sentence1"] == "query" and SIDE_OF_ROLE["negative"] == "document"


@pytest.mark.parametrize("role", [None, "passage", "score"])
def test_without_a_role_that_has_a_head_it_is_an_error_that_names_those_that_do(role: str | None) -> None:
    encoder = make_two(prompts={"passage": "rain "})
    expected = r"two heads, .*: expected role query or document, or one of anchor, .*; found "
    expected += "no role" if role is None else f"the role '{role}'"
    for texts in (["rain"], "rain", []):
        with pytest.raises(ModelError, match=expected):
            encoder.encode(texts, role=role)


def test_a_text_in_both_roles_goes_once_through_the_backbone_and_once_through_each_head() -> None:
    encoder = make_two().eval()
    batch = make_batch(encoder)
    assert len(batch.lengths) == 4 < 6, "the premise: two texts stand in two roles"
    rows: dict[str, int] = {}

    def count(name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def hook(module: nn.Module, inputs: tuple[Any, ...], outputs: Any) -> None:
            rows[name] = rows.get(name, 0) + outputs[..., 0].numel()

        return hook

    assert isinstance(encoder.head, TwoHeads)
    encoder.backbone.get_input_embeddings().register_forward_hook(count("tokens"))
    encoder.head.query.register_forward_hook(count("queries"))
    encoder.head.document.register_forward_hook(count("documents"))
    found = encoder(batch)
    assert rows == {"tokens": sum(batch.lengths), "queries": 2, "documents": 4}
    as_query, as_document = found["anchor"][0].detach(), found["positive"][1].detach()
    np.testing.assert_allclose(as_query, encoder.encode("the cat sat", role="anchor"), atol=1e-6)
    np.testing.assert_allclose(as_document, encoder.encode("the cat sat", role="positive"), atol=1e-6)
    assert (as_query - as_document).abs().max() > 0.1
    torch.testing.assert_close(found["negative"][1, 0], found["positive"][0])


def test_a_training_step_moves_both_heads_and_the_backbone() -> None:
    encoder = make_two(dropout=0.1).train()
    before = {name: p.detach().clone() for name, p in encoder.named_parameters() if p.requires_grad}
    batch = make_batch(encoder)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    in_batch_negatives(RoleEmbeddings.of(batch, encoder(batch))).backward()
    optimizer.step()
    moved = {name for name, p in encoder.named_parameters() if p.requires_grad and not p.equal(before[name])}
    assert {name for name in before if name.startswith("head.")} <= moved
    assert len([name for name in moved if name.startswith("head.")]) == 8
    assert any(name.startswith("backbone.encoder.layer.0") for name in moved)


def test_the_gradient_of_each_head_comes_from_its_own_roles() -> None:
    encoder = make_two().eval()
    assert isinstance(encoder.head, TwoHeads)
    encoder(make_batch(encoder))["anchor"].sum().backward()
    assert all(p.grad is not None for p in encoder.head.query.parameters())
    assert all(p.grad is None for p in encoder.head.document.parameters())


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_sentence_transformers_gives_our_embeddings_of_both_sides(
    layers: int, normalize: bool, tmp_path: Path
) -> None:
    prompts = {"query": "the cat ", "document": "a dog "}
    encoder = make_two(layers, normalize=normalize, prompts=prompts, max_length=12)
    encoder.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    queries, documents = encoder.encode(TEXTS, role="anchor"), encoder.encode(TEXTS, role="positive")
    np.testing.assert_allclose(theirs.encode_query(TEXTS), queries, atol=1e-5)
    np.testing.assert_allclose(theirs.encode_document(TEXTS), documents, atol=1e-5)
    assert theirs.get_embedding_dimension() == encoder.dimension == 6
    assert np.abs(queries - documents).max() > 0.1
    again = SentenceEncoder.load(tmp_path, device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS, role="query"), queries, atol=1e-6)
    np.testing.assert_allclose(again.encode(TEXTS, role="document"), documents, atol=1e-6)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    encoder = make_two(layers=2)
    encoder.save(tmp_path)
    again = SentenceEncoder.load(tmp_path, device="cpu")
    saved, loaded = encoder.state_dict(), again.state_dict()
    assert list(saved) == list(loaded) and sum(name.startswith("head.") for name in saved) == 8
    assert all(torch.equal(saved[name], loaded[name]) for name in saved)
    assert read_layout(tmp_path).document_head is not None


def test_the_files_written_are_those_that_sentence_transformers_5_knows(tmp_path: Path) -> None:
    make_two(layers=1, normalize=True).save(tmp_path)
    types = [module["type"] for module in json.loads((tmp_path / "modules.json").read_text())]
    kinds = ["Transformer", "Pooling", "Router", "Normalize"]
    assert types == [f"sentence_transformers.models.{kind}" for kind in kinds]
    config = json.loads((tmp_path / "2_Router" / ROUTER_CONFIG).read_text())
    names = ["query_0_Dense", "document_0_Dense"]
    assert config == {
        "types": dict.fromkeys(names, "sentence_transformers.models.Dense"),
        "structure": {"query": names[:1], "document": names[1:]},
        "parameters": {"default_route": "document", "allow_empty_key": True},
    }


def test_a_default_prompt_is_that_of_both_sides_for_every_reader(tmp_path: Path) -> None:
    encoder = make_two(prompts={"plain": "the cat "}, default_prompt_name="plain")
    encoder.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    expected = encoder.encode(TEXTS, role="query")
    assert np.abs(expected - encoder.encode(TEXTS, role="query", prompt="")).max() > 1e-3
    np.testing.assert_allclose(theirs.encode_query(TEXTS), expected, atol=1e-5)
    again = SentenceEncoder.load(tmp_path, device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS, role="query"), expected, atol=1e-6)


def theirs_with_two_heads(folder: Path, *, normalize: bool = True) -> SentenceTransformer:
    """A model that sentence-transformers itself made, with heads of unequal depth, and saved."""
    make_encoder().save(folder.parent / "base")
    torch.manual_seed(2)
    router = st.Router.for_query_document(
        query_modules=[st.Dense(32, 5), st.Dense(5, 6, activation_function=nn.GELU())],
        document_modules=[st.Dense(32, 6, bias=False)],
    )
    chain = [st.Transformer(str(folder.parent / "base")), st.Pooling(32), router]
    model = SentenceTransformer(
        modules=[*chain, st.Normalize()] if normalize else chain, device="cpu", prompts={"query": "rain "}
    )
    model.save(str(folder))
    return model


@pytest.mark.parametrize("normalize", [False, True])
def test_a_router_of_sentence_transformers_loads_with_the_same_embeddings(
    normalize: bool, tmp_path: Path
) -> None:
    theirs = theirs_with_two_heads(tmp_path / "theirs", normalize=normalize)
    types = [module["type"] for module in json.loads((tmp_path / "theirs" / "modules.json").read_text())]
    assert types[2].startswith("sentence_transformers.base."), "the premise: this is the new layout"
    ours = SentenceEncoder.load(tmp_path / "theirs", device="cpu")
    assert ours.normalize == normalize and ours.dimension == 6
    np.testing.assert_allclose(ours.encode(TEXTS, role="anchor"), theirs.encode_query(TEXTS), atol=1e-5)
    np.testing.assert_allclose(ours.encode(TEXTS, role="positive"), theirs.encode_document(TEXTS), atol=1e-5)
    ours.save(tmp_path / "again")
    theirs_again = SentenceTransformer(str(tmp_path / "again"), device="cpu")
    np.testing.assert_allclose(theirs_again.encode_query(TEXTS), theirs.encode_query(TEXTS), atol=1e-5)


def test_a_new_shared_head_takes_the_place_of_two(tmp_path: Path) -> None:
    make_two().save(tmp_path)
    encoder = SentenceEncoder.load(tmp_path, head=HeadSpec(dim=4), device="cpu")
    assert encoder.encode(["rain"]).shape == (1, 4)
    encoder.save(tmp_path / "shared")
    assert not (tmp_path / "shared" / "2_Router").exists()


@pytest.fixture
def router(tmp_path: Path) -> Path:
    """The folder of the Router of a model that we wrote."""
    make_two(layers=1).save(tmp_path)
    return tmp_path / "2_Router"


def refusal(router: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_layout(router.parent)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("structure", {"query": ["query_0_Dense"]}, 'expected query and document; found ["query"]'),
        ("structure", {"text": ["query_0_Dense"], "image": []}, 'found ["text", "image"]'),
        ("structure", ["query_0_Dense"], "expected query and document"),
        ("structure", {"query": [], "document": ["document_0_Dense"]}, "a list of modules for each route"),
        ("structure", {"query": ["query_0_Dense"], "document": "x"}, "a list of modules for each route"),
        (
            "structure",
            {"query": ["query_0_Dense"], "document": ["query_0_Dense"]},
            "expected modules of its own in each route",
        ),
        ("structure", {"query": ["other"], "document": ["document_0_Dense"]}, 'Dense; found "None"'),
        ("types", None, "the type of each"),
        ("types", {"query_0_Dense": "sentence_transformers.models.Normalize"}, "models.Normalize"),
        ("types", {"query_0_Dense": "my_code.Dense"}, "my_code.Dense"),
        ("parameters", {"route_mappings": {"('query', 'text')": "document"}}, "expected no route_mappings"),
        ("parameters", ["query"], "expected no route_mappings"),
    ],
)
def test_a_router_of_another_form_is_refused_with_its_file(
    router: Path, key: str, value: object, named: str
) -> None:
    file = router / ROUTER_CONFIG
    config = json.loads(file.read_text())
    assert read_layout(router.parent).document_head is not None, "the premise: it is read as it is"
    file.write_text(json.dumps({**config, key: value}))
    message = refusal(router)
    assert message.startswith(f"{file}: ") and named in message


def test_a_module_of_a_router_that_leaves_its_folder_is_refused(router: Path) -> None:
    file = router / ROUTER_CONFIG
    file.write_text(file.read_text().replace("query_0_Dense", "../../query_0_Dense"))
    assert 'expected a folder within the model\'s, such as 1_Pooling; found "../../query_0_Dense"' in refusal(
        router
    )


def test_heads_of_unequal_dimensions_cannot_be_compared_and_are_refused(router: Path) -> None:
    other = router.parent / "other"
    make_encoder(head=trained_head(HeadSpec(dim=5), 32)).save(other)
    shutil.rmtree(router / "document_0_Dense")
    shutil.copytree(other / "2_Dense", router / "document_0_Dense")
    assert 'as many dimensions from both routes; found {"query": 6, "document": 5}' in refusal(router)


def test_a_head_that_takes_another_width_is_refused(router: Path) -> None:
    shutil.rmtree(router / "query_0_Dense")
    make_encoder(head=trained_head(HeadSpec(dim=6, layers=2), 32)).save(router.parent / "other")
    shutil.copytree(router.parent / "other" / "3_Dense", router / "query_0_Dense")
    assert "in_features of module Dense: expected 32; found 6" in refusal(router)


def test_a_router_without_its_file_is_refused(router: Path) -> None:
    (router / ROUTER_CONFIG).unlink()
    assert f"{router / ROUTER_CONFIG} is missing" in refusal(router)
