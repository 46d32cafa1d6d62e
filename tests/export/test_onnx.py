"""ONNX graphs of every architecture and pooling equal the encoder for any batch and length; 8-bit ones meet the bar."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import nn

from sbert_train.errors import ExportError
from sbert_train.export import export_model, int8, onnx
from sbert_train.export.fresh import READERS
from sbert_train.export.int8 import LOWEST_RANK_CORRELATION, STEPS, Quality, measure_quality
from sbert_train.export.onnx import BATCH_SIZES, Graph, input_names, require_onnx, write_graph
from sbert_train.export.reference import Reference, take_reference
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.model.pooling import POOLINGS
from tests.tiny import ARCHITECTURES, make_encoder, trained_head

pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
pytest.importorskip("onnxscript", reason="the extra onnx is not installed")

TEXTS = ["the cat sat", "dog", "a bird ate the fish and the man ran under the river . " * 9, ""]


def in_this_process(
    reader: str,
    model: Path,
    texts: Sequence[str],
    *,
    prompts: Sequence[str | None] = (None,),
    batch_sizes: Sequence[int] = (64,),
) -> NDArray[np.float32]:
    """What a fresh process would give, without its start."""
    embed = READERS[reader](model)
    return np.stack([embed(list(texts), prompt, size) for prompt in prompts for size in batch_sizes])


def tiny(architecture: str = "bert", **options: object) -> SentenceEncoder:
    head = trained_head(HeadSpec(dim=12, activation="gelu"), 32)
    return make_encoder(architecture, packing="sorted", head=head, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "model"
    tiny(normalize=True, max_length=24, prompts={"query": "the cat "}).save(path)
    return path


def test_the_graph_is_the_encoder(model: Path) -> None:
    encoder = tiny(normalize=True)
    tokens = encoder.tokenizer(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
    hidden, vectors = Graph(encoder.eval())(tokens["input_ids"], tokens["attention_mask"])
    assert hidden.shape == (4, 64, 32)
    np.testing.assert_allclose(vectors.detach(), encoder.encode(TEXTS), atol=1e-6)


def test_token_types_are_an_input_where_tokenizer_and_backbone_have_them() -> None:
    encoder = tiny()
    assert input_names(encoder) == ["input_ids", "attention_mask"]
    encoder.tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    assert input_names(encoder) == ["input_ids", "attention_mask", "token_type_ids"]
    distilbert = tiny("distilbert")
    distilbert.tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    assert input_names(distilbert) == ["input_ids", "attention_mask"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "pooling"),
    [("bert", pooling) for pooling in POOLINGS]
    + [(name, "mean") for name in ARCHITECTURES if name != "bert"],
)
def test_the_written_graph_gives_our_embeddings(tmp_path: Path, architecture: str, pooling: str) -> None:
    encoder = tiny(architecture, pooling=pooling)
    encoder.save(tmp_path)
    encoder.train()
    write_graph(encoder, tmp_path / "onnx" / "model.onnx")
    assert encoder.training  # as it was
    found = in_this_process("onnxruntime", tmp_path / "onnx" / "model.onnx", TEXTS, batch_sizes=(1, 2, 4))
    np.testing.assert_allclose(found, np.broadcast_to(encoder.encode(TEXTS), found.shape), atol=1e-5)


@pytest.mark.slow
def test_an_onnx_folder_is_compared_in_a_fresh_process(model: Path, tmp_path: Path) -> None:
    report = export_model(str(model), tmp_path / "out", to="onnx")
    assert report.main_file == "onnx/model.onnx"
    assert report.checks[0].figures["largest difference"] <= 1e-5
    assert report.checks[0].remark == f"batches of {', '.join(map(str, BATCH_SIZES))}"

    import onnxruntime

    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "onnx" / "model.onnx"))
    shapes = {one.name: one.shape for one in [*session.get_inputs(), *session.get_outputs()]}
    assert shapes == {
        "input_ids": ["batch", "sequence"],
        "attention_mask": ["batch", "sequence"],
        "last_hidden_state": ["batch", "sequence", 32],
        "sentence_embedding": ["batch", 12],
    }
    # The folder is a whole model, too.
    again = SentenceEncoder.load(tmp_path / "out", device="cpu")
    np.testing.assert_array_equal(
        again.encode(TEXTS), SentenceEncoder.load(model, device="cpu").encode(TEXTS)
    )


def test_a_graph_that_differs_is_an_error_and_leaves_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*_: object, prompts: Sequence[str], batch_sizes: Sequence[int]) -> NDArray[np.float32]:
        reference = take_reference(SentenceEncoder.load(model, device="cpu")).embeddings
        embeddings = np.repeat(reference, len(batch_sizes), axis=0)
        embeddings[-1, 0, 0] += 1e-4  # the last batch size of the last prompt
        return embeddings

    monkeypatch.setattr(onnx, "write_graph", lambda *_: None)
    monkeypatch.setattr(onnx, "embed_in_fresh_process", faulty)
    with pytest.raises(ExportError, match=r"as onnxruntime reads it, its embeddings differ by 1\.0e-04"):
        export_model(str(model), tmp_path / "out", to="onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_8_bit_folder_meets_the_bar_and_is_smaller(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "embed_in_fresh_process", in_this_process)
    report = export_model(str(model), tmp_path / "out", to="onnx-int8")
    assert [path.name for path in (tmp_path / "out" / "onnx").iterdir()] == ["model_quantized.onnx"]
    assert report.checks[0].figures["rank correlation"] >= LOWEST_RANK_CORRELATION
    assert report.checks[0].figures["lowest cosine"] < 1 - 1e-7  # it was quantised

    monkeypatch.setattr(int8, "LOWEST_MEAN_COSINE", 1.1)
    with pytest.raises(
        ExportError, match=r"no 8-bit form of this model is near enough: .* \(at least 1\.1\)"
    ):
        export_model(str(model), tmp_path / "none", to="onnx-int8")
    assert not (tmp_path / "none").exists()


def test_the_steps_are_tried_until_one_meets_the_bar(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    qualities = iter([Quality(0.9, 0.5, 0.99), Quality(0.99, 0.9, float("nan")), Quality(0.99, 0.9, 0.99)])

    def write(encoder: SentenceEncoder, file: Path) -> None:
        file.parent.mkdir()
        file.write_text("")

    def quantise(exact: Path, file: Path, step: object) -> None:
        tried.append(step)
        file.write_text("quantised")

    monkeypatch.setattr(int8, "write_graph", write)
    monkeypatch.setattr(int8, "_quantise", quantise)
    monkeypatch.setattr(int8, "embed_in_fresh_process", lambda *_, **__: None)
    monkeypatch.setattr(int8, "measure_quality", lambda *_: next(qualities))
    report = export_model(str(model), tmp_path / "out", to="onnx-int8")
    assert tried == list(STEPS.values())
    assert "8-bit: token embeddings only" in str(report)
    assert "mean cosine 0.9900, lowest cosine 0.9000, rank correlation 0.9900" in str(report)


def test_quality_is_that_of_the_worst_run() -> None:
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(2, 9, 5)).astype(np.float32)
    reference = Reference(tuple("abcdefghi"), (None, "query"), expected)
    found = np.repeat(expected, 2, axis=0) * 3  # the length of a vector is no matter
    same = measure_quality(found, reference)
    assert (same.mean_cosine, same.lowest_cosine, same.rank_correlation) == pytest.approx((1, 1, 1))
    assert same.enough

    found[3] = rng.normal(size=(9, 5))  # the second prompt's second batch size
    quality = measure_quality(found, reference)

    def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    cosines = [cosine(found[r, i], expected[r // 2, i]) for r in range(4) for i in range(9)]
    assert quality.mean_cosine == pytest.approx(np.mean(cosines), abs=1e-6)
    assert quality.lowest_cosine == pytest.approx(min(cosines), abs=1e-6)
    pairs = [(i, j) for i in range(9) for j in range(i)]
    a = [cosine(found[3, i], found[3, j]) for i, j in pairs]
    b = [cosine(expected[1, i], expected[1, j]) for i, j in pairs]
    assert quality.rank_correlation == pytest.approx(spearmanr(a, b).statistic, abs=1e-6)
    assert not quality.enough


def test_missing_packages_come_with_the_command(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name.startswith("onnx") else name)
    for to in ("onnx", "onnx-int8"):
        with pytest.raises(ExportError) as caught:
            export_model(str(model), tmp_path / "out", to=to)
        assert str(caught.value) == (
            'ONNX export needs onnx, onnxscript, onnxruntime: pip install "sbert-train[onnx]"'
        )
    monkeypatch.undo()
    require_onnx()  # does not raise


def test_a_model_over_the_size_of_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "LARGEST_FILE", 1_000)
    with pytest.raises(
        ExportError, match=r"an ONNX file holds at most 2 GB, and this model has 0\.0 GB of weights"
    ):
        write_graph(tiny(), tmp_path / "model.onnx")


@pytest.mark.slow
def test_a_model_that_cannot_be_traced_is_refused(tmp_path: Path) -> None:
    class Untraceable(nn.Module):
        def forward(self, vectors: object) -> object:
            if vectors.sum() > 0:  # type: ignore[attr-defined]
                return vectors
            return -vectors  # type: ignore[operator]

    encoder = tiny()
    encoder.head = nn.Sequential(Untraceable())
    with pytest.raises(
        ExportError, match=r"torch cannot write BertModel as ONNX: .*; use --to sentence-transformers"
    ):
        write_graph(encoder, tmp_path / "onnx" / "model.onnx")
