"""Low-rank adapters: equal to the base at first, alone in training, merged without a trace, resumed without a jump."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from sbert_train.data.batch import TextBatch
from sbert_train.data.collator import collate
from sbert_train.errors import ModelError
from sbert_train.model.dropout import FastDropout
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.freezing import freeze
from sbert_train.model.head import HeadSpec
from sbert_train.model.lora import LoraSpec, add_adapters
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.in_batch_negatives import in_batch_negatives
from tests.tiny import ARCHITECTURES, make_encoder, trained_head

TEXTS = ["the cat sat on the mat", "A dog!", "", "rain and sun " * 12, "a bird ate near the river"]
SPEC = LoraSpec(r=4)


def adapted(
    architecture: str = "bert", *, spec: LoraSpec = SPEC, fresh: bool = False, **options: Any
) -> SentenceEncoder:
    """A tiny encoder with adapters, which do something unless they are fresh."""
    encoder = make_encoder(architecture, **options)
    torch.manual_seed(1)
    encoder.add_lora(spec)
    if not fresh:
        for name, weights in encoder.named_parameters():
            if ".lora_B." in name:
                nn.init.normal_(weights, std=0.1)
    return encoder


def make_batch(encoder: SentenceEncoder, step: int = 0) -> TextBatch:
    """Three pairs, which differ between steps."""
    words = [("cat", "dog", "bird", "fish", "man")[(i + step) % 5] for i in range(3)]
    pairs = [(f"the {word} sat", f"a {word} slept on the mat") for word in words]
    ids = [encoder.tokenize(pair) for pair in pairs]
    return collate([{"anchor": anchor, "positive": positive} for anchor, positive in ids])


def trained(encoder: SentenceEncoder) -> dict[str, Tensor]:
    return {name: p for name, p in encoder.named_parameters() if p.requires_grad}


def steps(
    encoder: SentenceEncoder, optimizer: torch.optim.Optimizer, numbers: Sequence[int]
) -> Iterator[int]:
    """Real training steps, with dropout; each is yielded when it is done."""
    encoder.train()
    for number in numbers:
        torch.manual_seed(number)
        batch = make_batch(encoder, number)
        in_batch_negatives(RoleEmbeddings.of(batch, encoder(batch))).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield number


def adamw(encoder: SentenceEncoder) -> torch.optim.Optimizer:
    return torch.optim.AdamW(trained(encoder).values(), lr=1e-2)


def test_fresh_adapters_change_no_embedding_and_a_step_does() -> None:
    encoder = adapted(fresh=True)
    before = encoder.encode(TEXTS)
    np.testing.assert_array_equal(before, make_encoder().encode(TEXTS))
    list(steps(encoder, adamw(encoder), [0]))
    assert np.abs(encoder.encode(TEXTS) - before).max() > 1e-3


def test_a_layer_with_an_adapter_adds_the_scaled_product_of_its_two_matrices() -> None:
    encoder = adapted(spec=LoraSpec(r=4, alpha=6, target_modules=["query"])).eval()
    layer: Any = encoder.backbone.get_submodule("encoder.layer.0.attention.self.query")
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert a.shape == (4, 32) and b.shape == (32, 4)
    x = torch.randn(5, 32)
    torch.testing.assert_close(layer(x), layer.base_layer(x) + 6 / 4 * (x @ a.T @ b.T))


def test_dropout_of_adapters_is_fast_too() -> None:
    encoder = adapted(spec=LoraSpec(r=4, dropout=0.25, target_modules=["query"]))
    found = [module for module in encoder.backbone.modules() if isinstance(module, torch.nn.Dropout)]
    assert any(module.p == 0.25 for module in found) and all(type(module) is FastDropout for module in found)


def test_adapters_and_head_train_and_nothing_else_changes_in_a_step() -> None:
    torch.manual_seed(0)
    encoder = adapted(head=trained_head(HeadSpec(dim=6, shared=False), 32))
    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    names = trained(encoder)
    assert all(".lora_" in name or name.startswith("head.") for name in names)
    assert {name.split(".")[1] for name in names if name.startswith("head.")} == {"query", "document"}
    list(steps(encoder, torch.optim.AdamW(encoder.parameters(), lr=1e-2), [0]))
    moved = {name for name, p in encoder.named_parameters() if not p.equal(before[name])}
    assert moved == set(names)


EXPECTED = {
    "bert": ({"query", "value"}, "what peft adapts in bert"),
    "xlm-roberta": ({"query", "value"}, "what peft adapts in xlm-roberta"),
    "distilbert": ({"q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"}, "all of the transformer layers"),
    "mpnet": ({"q", "k", "v", "o", "dense"}, "all of the transformer layers"),
    "modernbert": ({"Wqkv", "Wo", "Wi"}, "all of the transformer layers"),
    "albert": (
        {"query", "key", "value", "dense", "ffn", "ffn_output"},
        "all of the transformer layers",
    ),
}


@pytest.mark.parametrize("architecture", EXPECTED)
def test_without_names_peft_chooses_and_else_all_layers_of_the_transformer(architecture: str) -> None:
    names, choice = EXPECTED[architecture]
    adapters = adapted(architecture).adapters
    assert adapters is not None
    assert {path.rpartition(".")[2] for path in adapters.layers} == names
    assert not [path for path in adapters.layers if "pooler" in path or "embedding" in path]
    assert str(adapters) == (
        f"LoRA of rank 4 in {len(adapters.layers)} linear layers ({', '.join(sorted(names))}: {choice})"
    )


def test_named_layers_are_found_by_their_name_or_the_end_of_their_path() -> None:
    def layers(*names: str) -> list[str]:
        adapters = adapted(spec=LoraSpec(target_modules=names)).adapters
        assert adapters is not None and adapters.choice == "as model.lora.target_modules names them"
        return list(adapters.layers)

    assert layers("key") == [f"encoder.layer.{i}.attention.self.key" for i in (0, 1)]
    assert layers("attention.output.dense") == [f"encoder.layer.{i}.attention.output.dense" for i in (0, 1)]
    assert layers("encoder.layer.1.output.dense") == ["encoder.layer.1.output.dense"]
    dense = layers("dense")
    assert len(dense) == 6 and "pooler.dense" not in dense, "the pooler is not part of an embedding"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["query", "que", "valu"], "named que, valu;"),
        (["LayerNorm"], "named LayerNorm;"),
        (["word_embeddings"], "named word_embeddings;"),
        (["pooler.dense"], "named pooler.dense;"),
        ([], r"named \(none is given\);"),
    ],
)
def test_a_layer_that_does_not_exist_is_an_error_that_names_those_that_do(
    names: list[str], found: str
) -> None:
    encoder = make_encoder()
    with pytest.raises(
        ModelError,
        match=rf"model.lora.target_modules: BertModel has no linear layer {found} it has: dense, key, query, value$",
    ):
        encoder.add_lora(LoraSpec(target_modules=names))
    assert encoder.adapters is None and len(trained(encoder)) > 10, "the encoder is left as it was"


def test_without_peft_the_error_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r'model.lora needs peft: pip install "sbert-train\[lora\]"'):
        make_encoder().add_lora(LoraSpec())


class BareConfig(PreTrainedConfig):
    model_type = "bare"


class Bare(PreTrainedModel):
    """A backbone with neither a list of layers nor a linear layer in one."""

    config_class = BareConfig

    def __init__(self) -> None:
        super().__init__(BareConfig())
        self.words = nn.Embedding(4, 2)
        self.linear = nn.Linear(2, 2)

    def get_input_embeddings(self) -> nn.Module:
        return self.words


def test_an_architecture_without_layers_is_told_so() -> None:
    with pytest.raises(
        ModelError, match=r"model.lora: Bare has no linear layers that adapters could go into"
    ):
        add_adapters(Bare(), LoraSpec())
    with pytest.raises(
        ModelError, match=r"model.freeze: Bare has no list of layers; use none, embeddings or"
    ):
        freeze(Bare(), 1)


def values_and_gradients(encoder: SentenceEncoder) -> tuple[Tensor, dict[str, Tensor]]:
    """Embeddings of both roles, and the gradients of what trains, of a fixed scalar of them; dropout off."""
    vectors = torch.cat(list(encoder(make_batch(encoder)).values()))
    encoder.zero_grad()
    torch.manual_seed(2)
    (vectors * torch.randn_like(vectors)).sum().backward()
    return vectors.detach(), {name: p.grad for name, p in trained(encoder).items() if p.grad is not None}


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name != "mpnet"])
def test_packed_equals_padded_with_adapters_in_values_and_gradients(architecture: str) -> None:
    packed = adapted(architecture).eval()
    padded = adapted(architecture, packing="padded").eval()
    packed.choose_way(make_batch(packed), "packed")
    assert (packed.way, padded.way) == ("packed", "padded")
    (values, gradients), (expected, expected_gradients) = (
        values_and_gradients(one) for one in (packed, padded)
    )
    assert (values - expected).norm() < 1e-5 * expected.norm()
    assert len(gradients) == len(trained(packed)) >= 8 and gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        assert (gradient - expected_gradients[name]).norm() <= 2e-5 * expected_gradients[name].norm() + 1e-5
        assert gradient.norm() > 0


def test_activation_checkpointing_gives_adapters_the_same_gradients() -> None:
    plain, checkpointed = adapted().eval(), adapted()
    checkpointed.activation_checkpointing_enable()
    checkpointed.train()
    for module in checkpointed.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    assert checkpointed.backbone.is_activation_checkpointing
    _, expected = values_and_gradients(plain)
    _, found = values_and_gradients(checkpointed)
    assert found.keys() == expected.keys() and len(found) == 8
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_merged_equals_adapted_and_leaves_no_trace(architecture: str) -> None:
    encoder, plain = adapted(architecture), make_encoder(architecture)
    expected = encoder.encode(TEXTS)
    assert np.abs(expected - plain.encode(TEXTS)).max() > 0.01, "the premise: the adapters do something"
    encoder.merge_lora()
    found = encoder.encode(TEXTS)
    assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)
    assert encoder.adapters is None
    assert list(encoder.state_dict()) == list(plain.state_dict())
    assert list(trained(encoder)) == list(trained(plain)), "all weights train again"
    encoder.merge_lora()
    np.testing.assert_array_equal(encoder.encode(TEXTS), found)


@pytest.mark.parametrize("architecture", ["bert", "mpnet", "albert", "modernbert"])
def test_a_saved_encoder_with_adapters_is_a_plain_folder_that_anybody_loads(
    architecture: str, tmp_path: Path
) -> None:
    encoder = adapted(architecture, normalize=True)
    names, expected = list(encoder.state_dict()), encoder.encode(TEXTS)
    encoder.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    np.testing.assert_allclose(np.asarray(theirs.encode(TEXTS)), expected, atol=1e-5)
    np.testing.assert_allclose(
        SentenceEncoder.load(tmp_path, device="cpu").encode(TEXTS), expected, atol=1e-6
    )
    assert set(load_file(tmp_path / "model.safetensors")) == set(
        make_encoder(architecture).backbone.state_dict()
    )
    assert not [file for file in tmp_path.rglob("*") if "adapter" in file.name]
    assert not [file for file in tmp_path.rglob("*.json") if "peft" in file.read_text()]
    assert list(encoder.state_dict()) == names and encoder.adapters is not None
    np.testing.assert_array_equal(encoder.encode(TEXTS), expected)


def has_dropout(encoder: SentenceEncoder) -> bool:
    kinds = [name for name, m in encoder.named_modules() if isinstance(m, nn.Dropout) and m.p > 0]
    return any("lora_dropout" in name for name in kinds) and any("lora" not in name for name in kinds)


def test_training_goes_on_after_a_save_as_if_there_had_been_none(tmp_path: Path) -> None:
    weights = []
    for saves in (False, True):
        encoder = adapted()
        assert has_dropout(encoder), "the premise: dropout of the adapters and of the backbone"
        for number in steps(encoder, adamw(encoder), [0, 1, 2]):
            if saves and number == 1:
                encoder.save(tmp_path)
        weights.append({name: p.detach() for name, p in trained(encoder).items()})
    assert all(torch.equal(weights[1][name], weight) for name, weight in weights[0].items())
    assert not torch.equal(*(next(iter(w.values())) for w in (weights[0], trained(adapted()))))


def test_a_resumed_training_ends_as_the_uninterrupted_one(tmp_path: Path) -> None:
    head = HeadSpec(dim=6)

    def start() -> tuple[SentenceEncoder, torch.optim.Optimizer]:
        torch.manual_seed(0)
        encoder = adapted(head=trained_head(head, 32), fresh=True)
        return encoder, adamw(encoder)

    whole, optimizer = start()
    list(steps(whole, optimizer, range(5)))

    first, optimizer = start()
    list(steps(first, optimizer, range(3)))
    save_file(first.state_dict(), tmp_path / "model.safetensors")
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")

    second, optimizer = start()
    assert any(not torch.equal(p, trained(first)[name]) for name, p in trained(second).items())
    second.load_state_dict(load_file(tmp_path / "model.safetensors"))
    optimizer.load_state_dict(torch.load(tmp_path / "optimizer.pt", weights_only=True))
    list(steps(second, optimizer, range(3, 5)))
    state = whole.state_dict()
    assert second.state_dict().keys() == state.keys() and any(".lora_A." in name for name in state)
    assert all(torch.equal(weight, state[name]) for name, weight in second.state_dict().items())


def test_adapters_are_put_in_once_and_take_no_freezing_beside_them() -> None:
    encoder = adapted()
    with pytest.raises(ModelError, match=r"has adapters already: call merge_lora\(\) first"):
        encoder.add_lora(LoraSpec())
    encoder.freeze("none")
    with pytest.raises(
        ModelError, match=r"model.freeze is embeddings, but with model.lora only the adapters"
    ):
        encoder.freeze("embeddings")
    encoder.merge_lora()
    encoder.add_lora(LoraSpec(r=2))
    assert encoder.adapters is not None and encoder.adapters.r == 2
