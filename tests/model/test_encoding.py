"""Encoding a corpus: one by one = in batches = in several processes = into a file; in little memory; in bf16."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sbert_train.data.batch import TextBatch, pack
from sbert_train.errors import EncodingError
from sbert_train.model import encoding
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from tests.tiny import WORDS, make_encoder, trained_head

ROOT = Path(__file__).parents[2]


def corpus(texts: int, seed: int = 0) -> list[str]:
    """Texts of 0 to 30 words, in no order, one in ten a copy of another."""
    rng = np.random.default_rng(seed)
    found = [" ".join(rng.choice(WORDS, size=rng.integers(0, 31))) for _ in range(texts)]
    for copy in range(0, texts, 10):
        found[copy] = found[(copy + 7) % texts]
    return found


TEXTS = corpus(300)


@pytest.fixture
def small_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forwards of 64 tokens and chunks of 1,024 characters, so that a few texts are many of both."""
    monkeypatch.setattr(encoding, "CPU_TOKENS", 64)


@pytest.fixture(params=["packed", "sorted", "padded"])
def by_way(request: pytest.FixtureRequest) -> SentenceEncoder:
    return make_encoder(packing=request.param)


def watch_forwards(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The lengths of the texts of each forward from now on."""
    seen: list[tuple[int, ...]] = []
    embed = encoder.embed

    def watched(batch: TextBatch, **options: Any) -> torch.Tensor:
        seen.append(batch.lengths)
        return embed(batch, **options)

    monkeypatch.setattr(encoder, "embed", watched)
    return seen


@pytest.mark.usefixtures("small_forwards")
def test_each_text_has_the_vector_that_it_has_alone(
    by_way: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = watch_forwards(by_way, monkeypatch)
    found = by_way.encode(TEXTS)
    assert len(sizes) > 30 and len(set(map(len, sizes))) > 3, (
        "the premise: many forwards, of any number of texts"
    )
    assert max(map(sum, sizes)) <= 64, "no forward has more tokens than it may"
    assert sum(map(len, sizes)) < len(TEXTS) * 0.95, "what occurs twice is embedded once"
    assert sizes[0][-1] == max(max(one) for one in sizes), "the longest comes first"
    np.testing.assert_allclose(found, np.stack([by_way.encode(text) for text in TEXTS]), atol=1e-6)


@pytest.mark.usefixtures("small_forwards")
def test_batch_size_is_the_most_texts_of_a_forward(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = encoder.encode(TEXTS)
    sizes = watch_forwards(encoder, monkeypatch)
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=5), expected, atol=1e-6)
    assert max(map(len, sizes)) == 5 and max(map(sum, sizes)) <= 64


@pytest.mark.parametrize("texts", [[], ["rain"], TEXTS], ids=["none", "one", "many"])
def test_a_file_holds_what_is_given_without_one(
    texts: list[str], encoder: SentenceEncoder, tmp_path: Path
) -> None:
    output = tmp_path / "new" / "vectors.npy"
    found = encoder.encode(texts, output=output)
    assert isinstance(found, np.memmap) and found.dtype == np.float32 and not found.flags.writeable
    np.testing.assert_array_equal(found, encoder.encode(texts))
    np.testing.assert_array_equal(np.load(output), found)
    assert [file.name for file in output.parent.iterdir()] == ["vectors.npy"]


def test_a_string_in_a_file_is_one_vector(encoder: SentenceEncoder, tmp_path: Path) -> None:
    found = encoder.encode("rain", output=tmp_path / "vectors.npy")
    np.testing.assert_array_equal(found, encoder.encode("rain"))


def test_an_interrupted_encode_leaves_the_file_that_was_there(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "vectors.npy"
    before = np.array(encoder.encode(["rain"], output=output))

    def interrupted(*_: object, **__: object) -> None:
        assert len(list(tmp_path.iterdir())) == 2, (
            "the premise: the new file is being written, beside the old"
        )
        raise KeyboardInterrupt

    monkeypatch.setattr(encoder, "embed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(TEXTS, output=output)
    np.testing.assert_array_equal(np.load(output), before)
    assert list(tmp_path.iterdir()) == [output]


def test_an_output_that_cannot_be_written_is_an_error_before_any_work(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "embed", None)  # would be a TypeError
    (tmp_path / "file").touch()
    for output, reason in (
        (tmp_path, "it is a folder"),
        (tmp_path / "file" / "x.npy", "Not a directory|File exists"),
    ):
        with pytest.raises(
            EncodingError, match=rf"{output} cannot be written: ({reason}); make room there, or choose"
        ):
            encoder.encode(TEXTS, output=output)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(EncodingError, match="No space left on device"):
        encoder.encode(TEXTS, output=tmp_path / "x.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: expected at least 1, or None for no limit, found 0"),
        ({"precision": "int8"}, "precision: expected one of fp32, bf16, auto, found 'int8'"),
        ({"devices": []}, r'devices: expected a list of one or more, such as \["cpu", "cpu"\], found \[\]'),
        ({"devices": "cpu"}, "devices: expected a list of one or more, .* found 'cpu'"),
        ({"convert_to": "list"}, "convert_to: expected numpy or torch, found 'list'"),
        (
            {"convert_to": "torch", "output": "x.npy"},
            "convert_to: expected numpy, which an output is given as",
        ),
    ],
)
def test_an_option_with_a_value_that_it_cannot_take_is_an_error(
    options: dict[str, Any], message: str, encoder: SentenceEncoder
) -> None:
    with pytest.raises(ValueError, match=message):
        encoder.encode([], **options)


def test_encode_draws_no_random_numbers_and_leaves_each_part_in_its_mode(encoder: SentenceEncoder) -> None:
    encoder.train()
    encoder.backbone.eval()
    state = torch.random.get_rng_state()
    encoder.encode(TEXTS)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert encoder.training and not encoder.backbone.training
    assert encoder.encode(["rain"], convert_to="torch").requires_grad is False


def test_bf16_is_near_and_float32_and_auto_is_what_the_hardware_has(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, found = (
        encoder.encode(TEXTS, normalize=True),
        encoder.encode(TEXTS, normalize=True, precision="bf16"),
    )
    assert found.dtype == np.float32
    assert 1e-4 < np.abs(found - exact).max() < 0.05, "the premise: the forward did run in bf16"
    assert (found * exact).sum(axis=1).min() > 0.999
    for native, expected in (("bf16", found), ("fp32", exact)):
        monkeypatch.setattr(
            "sbert_train.model.precision.native_precision", lambda use_cpu, native=native: native
        )
        np.testing.assert_array_equal(encoder.encode(TEXTS, normalize=True, precision="auto"), expected)


def test_precision_is_that_of_encode_and_gradients_around_it_stay(encoder: SentenceEncoder) -> None:
    """Weights that autocast has cast without gradients must not be those of a training step around."""
    exact = encoder.encode(TEXTS)
    batch = pack(encoder.tokenize(TEXTS[:3]))[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(encoder.encode(TEXTS), exact)
        encoder.encode(TEXTS, precision="bf16")
        encoder.embed(batch).sum().backward()
    # The bias of the key shifts all scores of a query alike, so it has no gradient to speak of; weights do.
    missing = [n for n, p in encoder.named_parameters() if p.requires_grad and p.ndim == 2 and p.grad is None]
    assert not missing


def test_the_texts_of_the_caller_do_not_grow(encoder: SentenceEncoder) -> None:
    """A tokenizer leaves the UTF-8 form of a text in it, and pickle does too."""
    read, encoded = ([f"Crème brûlée {number}" for number in range(20)] for _ in range(2))
    before = sum(map(sys.getsizeof, encoded))
    encoder.encode(encoded)
    assert sum(map(sys.getsizeof, encoded)) == before
    encoder.tokenize(read)
    assert sum(map(sys.getsizeof, read)) > before, "the premise"


def test_a_text_without_a_token_has_a_vector(by_way: SentenceEncoder) -> None:
    by_way.tokenizer.backend_tokenizer.post_processor = None  # no special tokens, as many decoders have it
    assert by_way.tokenizer("")["input_ids"] == []
    found = by_way.encode(["", "the cat", ""])
    assert np.isfinite(found).all() and np.array_equal(found[0], found[2])
    np.testing.assert_allclose(found[1], by_way.encode("the cat"), atol=1e-6)


def test_memory_does_not_grow_with_the_corpus(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python and numpy hold beyond the texts, where the vectors go into a file."""
    monkeypatch.setattr(encoding, "CPU_TOKENS", 512)
    few, many = corpus(2_000), corpus(8_000)
    tokenize = encoder.tokenize

    def tidy(texts: list[str]) -> list[Any]:
        gc.collect()  # what lies in cycles within the libraries would be counted until somebody does
        return tokenize(texts)

    monkeypatch.setattr(encoder, "tokenize", tidy)

    def peak(texts: list[str]) -> int:
        tracemalloc.start()
        encoder.encode(texts, output=tmp_path / "vectors.npy")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    gc.freeze()  # what other tests have left need not be looked through each time
    try:
        peak(few)  # whatever is made once
        # The order and what sorting it takes are 20 bytes a text; its token ids alone would be 180.
        assert peak(many) - peak(few) < 6_000 * 40
    finally:
        gc.unfreeze()


@pytest.mark.slow
def test_several_processes_give_what_one_gives(tmp_path: Path) -> None:
    head = trained_head(HeadSpec(dim=6, activation="tanh", layers=2, dropout=0.5), 32)
    encoder = make_encoder(head=head, normalize=True, prompts={"query": "the cat "}).train()
    state = torch.random.get_rng_state()
    expected = encoder.encode(TEXTS, role="query")
    found = encoder.encode(TEXTS, role="query", devices=["cpu"] * 3, output=tmp_path / "vectors.npy")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(expected - encoder.encode(TEXTS)).max() > 1e-3, "the premise: the role makes a difference"
    assert not multiprocessing.active_children()
    assert encoder.training and torch.equal(torch.random.get_rng_state(), state)
    assert encoder.encode([], devices=["cpu"]).shape == (0, 6)
    raw = encoder.encode(
        TEXTS[:5], devices=["cpu"], normalize=False, prompt="", precision="bf16", batch_size=1
    )
    np.testing.assert_array_equal(
        raw, encoder.encode(TEXTS[:5], normalize=False, prompt="", precision="bf16", batch_size=1)
    )


class Failing(SentenceEncoder):
    """An encoder that raises, or is killed, where told to."""

    how = "raise"

    def embed(self, *_: object, **__: object) -> torch.Tensor:
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise FloatingPointError("something went wrong")


@pytest.mark.slow
def test_what_goes_wrong_in_a_process_is_an_error_here(tmp_path: Path) -> None:
    whole = make_encoder()
    broken = Failing(whole.backbone, whole.tokenizer, max_length=64)
    with pytest.raises(FloatingPointError, match="something went wrong") as raised:
        broken.encode(TEXTS, devices=["cpu", "cpu"], output=tmp_path / "vectors.npy")
    assert "in the process that encodes on cpu:\nTraceback" in raised.value.__notes__[0]
    assert not multiprocessing.active_children() and not list(tmp_path.iterdir())

    broken.how = "kill"
    with pytest.raises(
        EncodingError, match="the process that encodes on cpu ended with exit code -9 before its work"
    ):
        broken.encode(TEXTS, devices=["cpu", "cpu"], output=tmp_path / "vectors.npy")
    assert not multiprocessing.active_children() and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_of_it(tiny_model: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            from sbert_train import SentenceEncoder
            SentenceEncoder.load({str(tiny_model)!r}, device="cpu").encode(["a", "b"], devices=["cpu"])
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=240
    )
    assert finished.returncode == 1
    assert 'below `if __name__ == "__main__":`' in finished.stderr.strip().splitlines()[-1]
