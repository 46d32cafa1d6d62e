"""Compiled layers: a training step as without, dropout and all, under the same names, or one line that says why not."""

import copy
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch._inductor.config as inductor
from torch import Tensor, nn

from sbert_train.data.batch import TextBatch, pack
from sbert_train.errors import ModelError
from sbert_train.model import compiling
from sbert_train.model.compiling import is_compiled, parts_between_attentions, remove_compiled
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.lora import LoraSpec
from tests.tiny import VOCABULARY, make_encoder

# torch asks every tensor that it traces for its gradient, and is warned by itself of those that keep none.
# Its code generator imports a part of it that it has deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]

PARTS = {
    "bert": {"BertSelfOutput", "BertIntermediate", "BertOutput"},
    "distilbert": {"FFN"},
    "modernbert": {"ModernBertMLP"},
}


def batch_of(*lengths: int, seed: int = 0) -> TextBatch:
    rng = np.random.default_rng(seed)
    return pack([rng.integers(4, len(VOCABULARY), size=n).astype(np.int32) for n in lengths])[0]


@pytest.fixture
def batch() -> TextBatch:
    return batch_of(3, 4, 9, 16, 17)


def step(encoder: SentenceEncoder, batch: TextBatch, seed: int = 0) -> tuple[Tensor, dict[str, Tensor]]:
    """Pooled vectors of a training step, and the gradient of each parameter that has one."""
    encoder.zero_grad()
    encoder.train()
    torch.manual_seed(seed)
    vectors = encoder.pool(batch)
    (vectors * torch.linspace(-1, 1, vectors.numel()).view_as(vectors)).sum().backward()
    return vectors.detach(), {
        name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None
    }


def require_equal_steps(one: SentenceEncoder, other: SentenceEncoder, batch: TextBatch) -> None:
    (a, grads_a), (b, grads_b) = step(one, batch), step(other, batch)
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert list(grads_a) == list(grads_b) and grads_a
    for name, gradient in grads_a.items():
        torch.testing.assert_close(gradient, grads_b[name], rtol=1e-3, atol=1e-4, msg=name)


def frames() -> int:
    """How many graphs torch has compiled in this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """torch.compile traces, but generates no code: what is traced runs as it is; the list counts its runs."""
    compile_, runs = torch.compile, []

    def traced(graph: torch.fx.GraphModule, _: list[Tensor]) -> object:
        def run(*args: object) -> object:
            runs.append(1)
            return graph.forward(*args)

        return run

    def eager(function: object, **options: object) -> object:
        return compile_(function, backend=traced, dynamic=True)  # type: ignore[call-overload]

    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", eager)
    yield runs
    torch.compiler.reset()


@pytest.mark.parametrize("architecture", PARTS)
def test_the_parts_are_the_largest_that_no_attention_is_in(architecture: str, batch: TextBatch) -> None:
    encoder = make_encoder(architecture)
    training = encoder.training
    parts = parts_between_attentions(encoder.backbone, batch, 0)
    assert {type(part).__name__ for part in parts} == PARTS[architecture]
    assert len(parts) == 2 * len(PARTS[architecture])  # of each of two layers
    assert encoder.training == training and encoder.backbone.training == training
    assert not any(module._forward_pre_hooks for module in encoder.modules())


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "electra"])
def test_a_step_with_dropout_is_the_same_compiled(
    architecture: str, batch: TextBatch, quick: list[int]
) -> None:
    plain = make_encoder(architecture)
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    assert "parts of 2 layers compiled in" in compiled.compiled
    assert any(isinstance(m, nn.Dropout) and m.p > 0 for m in compiled.backbone.modules())
    quick.clear()
    require_equal_steps(compiled, plain, batch_of(1, 2, 5, 8, 8, 30, seed=1))
    assert len(quick) >= 2  # it was compiled code that ran
    assert not torch.equal(step(plain, batch, seed=1)[0], step(plain, batch, seed=2)[0])  # dropout is on


def test_evaluation_and_encode_run_nothing_compiled(batch: TextBatch, quick: list[int]) -> None:
    plain = make_encoder().eval()
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    assert quick
    quick.clear()
    assert np.array_equal(compiled.encode(["the cat sat"]), plain.encode(["the cat sat"]))
    assert torch.equal(compiled.eval().pool(batch), plain.pool(batch)) and not quick


def test_all_weights_keep_their_names_and_a_saved_model_loads(
    tmp_path: Path, batch: TextBatch, quick: list[int]
) -> None:
    plain = make_encoder()
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    assert list(compiled.state_dict()) == list(plain.state_dict())
    assert list(dict(compiled.named_parameters())) == list(dict(plain.named_parameters()))
    compiled.save(tmp_path / "compiled")
    plain.save(tmp_path / "plain")
    for file in sorted(path for path in (tmp_path / "plain").rglob("*") if path.is_file()):
        assert (
            file.read_bytes() == (tmp_path / "compiled" / file.relative_to(tmp_path / "plain")).read_bytes()
        )
    assert SentenceEncoder.load(tmp_path / "compiled", device="cpu").compiled == ""


def test_a_copy_of_a_compiled_encoder_runs_its_own_weights(batch: TextBatch, quick: list[int]) -> None:
    compiled = make_encoder()
    compiled.compile_layers(batch)
    before = step(compiled, batch)[0]
    changed = copy.deepcopy(compiled)
    with torch.no_grad():
        for weights in changed.backbone.parameters():
            weights.mul_(1.5)
    assert not torch.allclose(step(changed, batch)[0], before)
    assert torch.equal(step(compiled, batch)[0], before)


def test_a_copy_and_another_process_have_the_dropout_of_their_own_mode(
    batch: TextBatch, quick: list[int]
) -> None:
    compiled = make_encoder()
    expected = compiled.encode(["the cat sat"])
    compiled.compile_layers(batch)
    compiled.train()
    assert np.array_equal(copy.deepcopy(compiled).encode(["the cat sat"]), expected)
    file = io.BytesIO()
    torch.save(compiled, file)
    file.seek(0)
    assert np.array_equal(torch.load(file, weights_only=False).encode(["the cat sat"]), expected)


def test_one_compilation_serves_layers_and_batches_of_any_size(batch: TextBatch, quick: list[int]) -> None:
    encoder = make_encoder()
    encoder.compile_layers(batch)
    before = frames()
    for seed in range(8):
        lengths = sorted(np.random.default_rng(seed).integers(1, 40, size=3 + 5 * seed).tolist())
        step(encoder, batch_of(*lengths, seed=seed))
    assert before > 0 and frames() == before


def test_frozen_layers_stay_frozen_compiled(batch: TextBatch, quick: list[int]) -> None:
    plain = make_encoder()
    plain.freeze(1)
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    assert "backbone.encoder.layer.0.output.dense.weight" not in step(plain, batch)[1]
    require_equal_steps(compiled, plain, batch)


def test_adapters_inside_compiled_parts_train_and_merge(
    tmp_path: Path, batch: TextBatch, quick: list[int]
) -> None:
    plain = make_encoder()
    plain.add_lora(LoraSpec(r=2, dropout=0.1, target_modules=["dense", "query"]))
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    for encoder in (plain, compiled):
        for name, weights in encoder.named_parameters():
            if "lora_B" in name:
                torch.nn.init.constant_(weights, 0.1)
    require_equal_steps(compiled, plain, batch)
    compiled.save(tmp_path)
    plain.merge_lora()
    loaded = SentenceEncoder.load(tmp_path, device="cpu")
    assert np.allclose(loaded.encode(["the cat sat"]), plain.encode(["the cat sat"]), atol=1e-5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_gives_the_same_gradients(
    reentrant: bool, batch: TextBatch, quick: list[int]
) -> None:
    plain = make_encoder()
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    compiled.activation_checkpointing_enable({"use_reentrant": reentrant})
    require_equal_steps(compiled, plain, batch)


def test_what_does_not_go_packed_is_refused(batch: TextBatch) -> None:
    for encoder in (make_encoder("mpnet"), make_encoder(packing="sorted")):
        with pytest.raises(ModelError, match=r"engine\.compile is true, but only the packed .* set it to fa"):
            encoder.compile_layers(batch)


def test_layers_without_a_part_besides_attention_are_refused(batch: TextBatch) -> None:
    with pytest.raises(ModelError, match="AlbertModel have no part that stands apart from attention; set it"):
        make_encoder("albert").compile_layers(batch)


def test_a_compiled_step_that_differs_is_refused_and_undone(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_require_active", lambda: None)
    monkeypatch.setattr(
        torch, "compile", lambda forward, **_: lambda *args: forward(*args) * (1 + 1e-2 * torch.randn(()))
    )
    encoder = make_encoder().eval()
    with pytest.raises(ModelError, match=r"compiled and uncompiled values of a first batch differ by .*e-0"):
        encoder.compile_layers(batch)
    assert not any(is_compiled(module) for module in encoder.modules()) and not encoder.training
    assert encoder.compiled == ""


def test_torch_compile_switched_off_is_no_silent_nothing(
    batch: TextBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    with pytest.raises(ModelError, match=r"torch\.compile is switched off .*; set it to false"):
        make_encoder().compile_layers(batch)


def test_taken_out_again_nothing_is_left(batch: TextBatch, quick: list[int]) -> None:
    encoder = make_encoder()
    encoder.compile_layers(batch)
    assert sum(is_compiled(module) for module in encoder.modules()) == 6
    remove_compiled(encoder.backbone)
    quick.clear()
    step(encoder, batch)
    assert not quick and not any(is_compiled(module) for module in encoder.modules())


@pytest.mark.slow
def test_what_the_compiler_makes_is_the_same_step_dropout_and_all(batch: TextBatch) -> None:
    torch.compiler.reset()
    plain = make_encoder()
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(batch)
    before = frames()
    other = batch_of(1, 2, 5, 8, 8, 30, seed=1)
    require_equal_steps(compiled, plain, other)
    assert before > 0 and frames() == before
    # A forward that is repeated to have gradients drops what the first one dropped.
    vectors = step(compiled, other, seed=5)[0]
    torch.manual_seed(5)
    with torch.no_grad():
        torch.testing.assert_close(compiled.pool(other), vectors, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(step(compiled, other, seed=6)[0], vectors)


@pytest.mark.slow
def test_without_a_compiler_the_error_is_one_line(
    batch: TextBatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # what others compiled would do
    torch.compiler.reset()
    encoder = make_encoder()
    # Its own way to patch: after a plain setattr and delattr the setting would be gone for whatever compiles next.
    with inductor.patch({"cpp.cxx": (None, "no-such-compiler")}), pytest.raises(ModelError) as error:
        encoder.compile_layers(batch)
    torch.compiler.reset()
    assert "engine.compile is true, but torch.compile fails here (" in str(error.value)
    assert "no-such-compiler" in str(error.value) and "it needs a C++ compiler" in str(error.value)
    assert "\n" not in str(error.value) and not any(is_compiled(module) for module in encoder.modules())
