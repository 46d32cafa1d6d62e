"""What is frozen stays exactly as it was in real training steps with dropout, and all else moves."""

import pytest
import torch
from torch import nn

from sbert_train.data.collator import collate
from sbert_train.errors import ModelError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
from tests.tiny import make_encoder, trained_head

LAYERS = {
    "bert": "encoder.layer",
    "distilbert": "transformer.layer",
    "modernbert": "layers",
    "mpnet": "encoder.layer",
}
"""Architecture -> where its list of layers lies in the backbone."""


def make(architecture: str = "bert", *, shared: bool = True) -> SentenceEncoder:
    torch.manual_seed(0)
    return make_encoder(architecture, head=trained_head(HeadSpec(dim=6, dropout=0.1, shared=shared), 32))


def train(encoder: SentenceEncoder, steps: int = 2) -> set[str]:
    """Train for some steps, with dropout and with a decay of weights; the names of the parameters that moved."""
    encoder.train()
    assert sum(isinstance(m, nn.Dropout) and m.p > 0 and m.training for m in encoder.modules()) > 1
    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-2, weight_decay=0.1)
    pairs = [("the cat sat", "a cat slept on the mat"), ("rain and sun", "sun"), ("a dog ran", "the big dog")]
    ids = [encoder.tokenize(pair) for pair in pairs]
    batch = collate([{"anchor": anchor, "positive": positive} for anchor, positive in ids])
    for _ in range(steps):
        in_batch_negatives(RoleEmbeddings.of(batch, encoder(batch))).backward()
        optimizer.step()
        optimizer.zero_grad()
    return {name for name, p in encoder.named_parameters() if not torch.equal(p, before[name])}


@pytest.mark.parametrize("architecture", LAYERS)
@pytest.mark.parametrize("what", ["none", "embeddings", 1, 2, "backbone"])
def test_what_is_frozen_stays_exactly_as_it_was_and_all_else_moves(
    architecture: str, what: str | int
) -> None:
    encoder = make(architecture)
    encoder.freeze(what)
    layers = [f"backbone.{LAYERS[architecture]}.{i}." for i in range(2)]
    frozen = ["backbone.pooler."]
    if what != "none":
        frozen += ["backbone.embeddings."]
    frozen += layers[: what if isinstance(what, int) else 0] + ["backbone."] * (what == "backbone")
    names = dict(encoder.named_parameters())
    expected = {name for name in names if not name.startswith(tuple(frozen))}
    assert all(any(name.startswith(layer) for name in names) for layer in layers), (
        "the premise: both are there"
    )

    moved = train(encoder)
    assert moved <= expected
    # The gradient of a bias may be zero: adding the same to all keys of a text changes no attention.
    assert {name for name in expected if names[name].ndim == 2} <= moved
    assert {"head.0.linear.weight", "head.0.linear.bias"} <= moved


@pytest.mark.parametrize("what", ["none", "embeddings", 1, 2, "backbone"])
def test_what_moves_is_what_asks_for_a_gradient(what: str | int) -> None:
    encoder = make()
    encoder.freeze(what)
    assert train(encoder) == {name for name, p in encoder.named_parameters() if p.requires_grad}


def test_freezing_the_backbone_leaves_two_heads_to_train() -> None:
    encoder = make(shared=False)
    encoder.freeze("backbone")
    assert {name.split(".")[1] for name in train(encoder)} == {"query", "document"}


def test_more_frozen_leaves_less_to_train() -> None:
    counts = []
    for what in ("none", "embeddings", 1, 2, "backbone"):
        encoder = make()
        encoder.freeze(what)
        counts.append(sum(p.numel() for p in encoder.parameters() if p.requires_grad))
    assert counts[0] > counts[1] > counts[2] > counts[3] == counts[4]


def test_freezing_more_than_there_is_is_refused(encoder: SentenceEncoder) -> None:
    with pytest.raises(ModelError, match=r"model.freeze is 3, but this backbone has 2 layers"):
        encoder.freeze(3)


def test_the_next_sentence_pooler_is_not_trained(encoder: SentenceEncoder) -> None:
    pooler = [p for name, p in encoder.named_parameters() if "pooler" in name]
    assert pooler and not any(p.requires_grad for p in pooler)
