"""What the encoder makes of a batch: the embeddings by role, and the same in two steps from pooled vectors."""

import numpy as np
import pytest
import torch

from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from tests.tiny import make_encoder, trained_head

ANCHORS = ["the cat sat", "a dog ran near the big red house", "rain"]
POSITIVES = ["rain", "the cat sat on the mat", "sun and rain"]
NEGATIVES = [["a dog", "the cat sat"], ["a bird", "a fish"], ["the train", "sun and rain"]]
TEXTS = {"anchor": ANCHORS, "positive": POSITIVES, "negative": [text for pair in NEGATIVES for text in pair]}


def make_batch(encoder: SentenceEncoder) -> TextBatch:
    """Three rows with two negatives each; some texts stand in two roles."""
    return collate(
        [
            {
                "anchor": encoder.tokenize([anchor])[0],
                "positive": encoder.tokenize([positive])[0],
                "negative": encoder.tokenize(negatives),
            }
            for anchor, positive, negatives in zip(ANCHORS, POSITIVES, NEGATIVES, strict=True)
        ]
    )


@pytest.fixture
def encoder() -> SentenceEncoder:
    """Two dense layers over a tiny BERT, and unit length at the end."""
    torch.manual_seed(0)
    return make_encoder(head=trained_head(HeadSpec(dim=6, layers=2), 32), normalize=True).eval()


def test_forward_gives_each_role_the_embeddings_of_its_texts(encoder: SentenceEncoder) -> None:
    batch = make_batch(encoder)
    assert len(batch.lengths) == 9 < 12, "the premise: texts that stand in two roles"
    found = {role: vectors.detach() for role, vectors in encoder(batch).items()}
    assert {role: vectors.shape for role, vectors in found.items()} == {
        "anchor": (3, 6),
        "positive": (3, 6),
        "negative": (3, 2, 6),
    }
    for role, texts in TEXTS.items():
        expected = encoder.encode(texts).reshape(found[role].shape)
        np.testing.assert_allclose(found[role], expected, atol=1e-6)


def test_from_pooled_makes_of_pooled_vectors_what_forward_makes_of_texts(encoder: SentenceEncoder) -> None:
    batch = make_batch(encoder)
    pooled = encoder.pool(batch)
    assert pooled.shape == (9, 32) and pooled.dtype == torch.float32
    for role, vectors in encoder.from_pooled(pooled, batch).items():
        torch.testing.assert_close(vectors, encoder(batch)[role], rtol=0, atol=0)
    other = encoder.from_pooled(pooled.flip(0), batch)["anchor"]
    assert not torch.allclose(other, encoder(batch)["anchor"], atol=1e-3), "they are read, not recomputed"


def test_embed_pooled_takes_any_number_of_leading_dimensions(encoder: SentenceEncoder) -> None:
    pooled = encoder.pool(make_batch(encoder))[:8]
    flat = encoder.embed_pooled(pooled)
    torch.testing.assert_close(encoder.embed_pooled(pooled.view(4, 2, 32)).view(8, 6), flat)
    torch.testing.assert_close(flat.norm(dim=-1), torch.ones(8))
    torch.testing.assert_close(
        torch.nn.functional.normalize(encoder.embed_pooled(pooled, normalize=False), dim=-1), flat
    )


def test_a_text_of_two_roles_gets_the_gradients_of_both(encoder: SentenceEncoder) -> None:
    batch = make_batch(encoder)
    pooled = encoder.pool(batch).detach().requires_grad_()
    vectors = encoder.from_pooled(pooled, batch)
    gradients = {
        role: torch.autograd.grad(vectors[role].sum(), pooled, retain_graph=True)[0]
        for role in ("anchor", "positive")
    }
    both = torch.autograd.grad(vectors["anchor"].sum() + vectors["positive"].sum(), pooled)[0]
    text = int(batch.index["anchor"][2])
    assert text == int(batch.index["positive"][0]), "the premise: one text, two roles"
    assert all(gradient[text].norm() > 1e-3 for gradient in gradients.values())
    torch.testing.assert_close(both[text], gradients["anchor"][text] + gradients["positive"][text])
