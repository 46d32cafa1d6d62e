"""What is exported equals the model, as fresh processes read it; what does not is not left behind."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from sbert_train.errors import ExportError
from sbert_train.export import EXPORTERS, export_model, folder, fresh
from sbert_train.export.fresh import CannotImport, embed_in_fresh_process
from sbert_train.export.probes import PROBES
from sbert_train.export.reference import TOLERANCE, Reference, require_equal, take_reference
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import HeadSpec
from sbert_train.model.read_layout import read_layout
from sbert_train.objectives.softmax import CLASSIFIER, SoftmaxClassifier, load_classifier, save_classifier
from tests.tiny import make_encoder, trained_head

Embeddings = NDArray[np.float32]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tiny model with all that a folder can hold, and a card."""
    path = tmp_path_factory.mktemp("export") / "model"
    make_encoder(
        pooling="weighted_mean",
        head=trained_head(HeadSpec(dim=12, layers=2), 32),
        normalize=True,
        max_length=24,
        prompts={"query": "the cat ", "document": "a dog "},
        default_prompt_name="document",
    ).save(path)
    (path / "README.md").write_text("# The card\n")
    (path / "notes.txt").write_text("of no interest to others")
    return path


def in_this_process(
    reader: str,
    path: Path,
    texts: Sequence[str],
    *,
    prompts: Sequence[str | None] = (None,),
    batch_sizes: Sequence[int] = (64,),
) -> Embeddings:
    """What a fresh process would give, without its start."""
    encoder = SentenceEncoder.load(path, device="cpu")
    return np.stack([encoder.encode(list(texts), role=prompt) for prompt in prompts for _ in batch_sizes])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "embed_in_fresh_process", in_this_process)


def test_the_probes_are_varied_enough_to_tell_models_apart(model: Path) -> None:
    lengths = [len(ids) for ids in SentenceEncoder.load(model, device="cpu").tokenize(PROBES)]
    assert min(lengths) == 2  # nothing but [CLS] and [SEP]
    assert max(lengths) == 24  # cut
    assert "" in PROBES
    assert not all(text.isascii() for text in PROBES)
    assert len(set(PROBES)) == len(PROBES)


@pytest.mark.slow
def test_a_folder_is_compared_in_fresh_processes_by_us_and_by_sentence_transformers(
    model: Path, tmp_path: Path
) -> None:
    report = export_model(str(model), tmp_path / "out")
    assert [check.reader.split()[0] for check in report.checks] == ["sbert-train", "sentence-transformers"]
    assert all(check.figures["largest difference"] <= TOLERANCE for check in report.checks)
    assert (tmp_path / "out" / "README.md").read_text() == "# The card\n"
    assert not (tmp_path / "out" / "notes.txt").exists()
    assert read_layout(tmp_path / "out").prompts == {"query": "the cat ", "document": "a dog "}
    manifest = json.loads((tmp_path / "out" / "export.json").read_text())
    assert manifest["to"] == "sentence-transformers"
    assert manifest["model"] == str(model)
    text = str(report)
    assert f"{tmp_path / 'out' / 'model.safetensors'} (0." in text
    assert "checked by sentence-transformers 6." in text

    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    ours = SentenceEncoder.load(model, device="cpu")
    np.testing.assert_allclose(theirs.encode(list(PROBES)), ours.encode(PROBES), atol=1e-5)


def test_every_prompt_is_compared(model: Path) -> None:
    reference = take_reference(SentenceEncoder.load(model, device="cpu"))
    assert reference.prompts == (None, "query", "document")
    assert reference.embeddings.shape == (3, len(PROBES), 12)
    np.testing.assert_array_equal(reference.embeddings[0], reference.embeddings[2])  # the default prompt
    assert np.abs(reference.embeddings[0] - reference.embeddings[1]).max() > 0.01


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("installed", [None, "broken"])
def test_without_sentence_transformers_it_says_that_it_was_not_tried(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None
) -> None:
    def reader(name: str, *args: object, **options: object) -> Embeddings:
        if name == "sentence-transformers":
            raise CannotImport("No module named 'transformers.old'")
        return in_this_process(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "embed_in_fresh_process", reader)
    if installed is None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text = str(export_model(str(model), tmp_path / "out"))
    assert text.splitlines()[-1].endswith(
        "sentence-transformers: not installed, so not tried"
        if installed is None
        else "installed, but cannot be imported: No module named 'transformers.old'"
    )


@pytest.mark.parametrize("fault", ["shifted", "not a number", "one text", "one dimension less"])
def test_an_export_that_differs_is_an_error_and_leaves_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def faulty(*args: object, **options: object) -> Embeddings:
        embeddings = in_this_process(*args, **options)  # type: ignore[arg-type]
        match fault:
            case "shifted":
                embeddings += 2e-5
            case "not a number":
                embeddings[0, 3, 2] = np.nan
            case "one text":
                embeddings[1, -1] *= -1
            case _:
                embeddings = embeddings[..., :-1]
        return embeddings

    monkeypatch.setattr(folder, "embed_in_fresh_process", faulty)
    with pytest.raises(ExportError, match=r"the export is not the model: .*sbert-train"):
        export_model(str(model), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_large_embeddings_are_compared_by_their_size() -> None:
    values = np.array([[[300.0, -1.0]]], dtype=np.float32)
    reference = Reference(("text",), (None,), values)
    assert require_equal(values * np.float32(1 + 5e-6), reference, "x") == pytest.approx(5e-6, rel=0.05)
    with pytest.raises(ExportError, match=r"differ by 3\.3e-05, expected at most 1e-05"):
        require_equal(values + np.float32(0.01), reference, "x")


@pytest.fixture(scope="module")
def two_heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tiny model with a head for queries and one for documents."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("two") / "model"
    head = trained_head(HeadSpec(dim=12, shared=False), 32)
    make_encoder(head=head, normalize=True, prompts={"query": "the cat ", "plain": "a dog "}).save(path)
    return path


def test_both_heads_are_compared(two_heads: Path) -> None:
    encoder = SentenceEncoder.load(two_heads, device="cpu")
    reference = take_reference(encoder)
    assert reference.prompts == ("query", "document")
    np.testing.assert_array_equal(reference.embeddings[0], encoder.encode(PROBES, role="anchor"))
    np.testing.assert_array_equal(reference.embeddings[1], encoder.encode(PROBES, role="positive"))
    assert np.abs(reference.embeddings[0] - reference.embeddings[1]).max() > 0.1


@pytest.mark.slow
def test_both_heads_are_compared_in_fresh_processes(two_heads: Path, tmp_path: Path) -> None:
    report = export_model(str(two_heads), tmp_path / "out")
    assert [check.reader.split()[0] for check in report.checks] == ["sbert-train", "sentence-transformers"]
    assert all(check.figures["largest difference"] <= TOLERANCE for check in report.checks)


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["sbert-train", "sentence-transformers"])
def test_a_fresh_process_reads_the_head_that_is_named(two_heads: Path, reader: str) -> None:
    texts = ["the cat sat on the mat", "rain"]
    found = embed_in_fresh_process(reader, two_heads, texts, prompts=("document", "query"))
    encoder = SentenceEncoder.load(two_heads, device="cpu")
    np.testing.assert_allclose(found[0], encoder.encode(texts, role="document"), atol=1e-5)
    np.testing.assert_allclose(found[1], encoder.encode(texts, role="query"), atol=1e-5)


@pytest.mark.parametrize("to", ["onnx", "onnx-int8"])
def test_one_graph_cannot_hold_two_heads_which_is_said_before_any_work(
    two_heads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(SentenceEncoder, "load", loaded.append)
    with pytest.raises(
        ExportError,
        match=r"has two heads, .*: use --to sentence-transformers, or train with model.head.shared",
    ):
        export_model(str(two_heads), tmp_path / "out", to=to)
    assert loaded == [] and list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_model_that_does_not_load_in_the_fresh_process_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(
        ExportError, match=r"fails with .*ModelError: .* is not a model: it has no config\.json"
    ):
        embed_in_fresh_process("sbert-train", tmp_path, ["a cat"])


@pytest.mark.slow
def test_the_fresh_process_takes_nothing_from_the_working_directory(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise AssertionError('taken from the working directory')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"))
    embeddings = embed_in_fresh_process("sbert-train", model, ["the cat sat", "dog"], batch_sizes=(1, 2))
    assert embeddings.shape == (2, 2, 12)


def test_a_library_that_cannot_be_imported_is_told_apart(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # so that importing it fails

    def run_here(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        with pytest.raises(SystemExit) as caught:
            fresh.main(Path(command[-1]))
        return subprocess.CompletedProcess(command, int(str(caught.value.code)), "", capsys.readouterr().err)

    monkeypatch.setattr(subprocess, "run", run_here)
    with pytest.raises(CannotImport, match="import of sentence_transformers halted"):
        embed_in_fresh_process("sentence-transformers", model, ["a cat"])


def test_an_unknown_format_is_told_what_there_is(model: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ExportError, match="--to: expected one of sentence-transformers, onnx, onnx-int8; found gguf"
    ):
        export_model(str(model), tmp_path / "out", to="gguf")


@pytest.mark.usefixtures("quick")
def test_a_model_is_not_exported_onto_itself(model: Path) -> None:
    before = sorted(path.name for path in model.iterdir())
    with pytest.raises(ExportError, match="not written by an export"):
        export_model(str(model), model)
    assert sorted(path.name for path in model.iterdir()) == before


@pytest.mark.usefixtures("quick")
def test_a_place_in_use_is_found_before_the_model_is_loaded(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(SentenceEncoder, "load", loaded.append)
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(ExportError, match=r"mine\.txt"):
        export_model(str(model), tmp_path)
    assert loaded == []


def test_the_exporters_are_those_of_the_contract() -> None:
    assert list(EXPORTERS) == ["sentence-transformers", "onnx", "onnx-int8"]


def test_a_classifier_goes_with_its_model_and_is_in_nobodys_way(
    model: Path, tmp_path: Path, quick: None
) -> None:
    source = shutil.copytree(model, tmp_path / "model")
    classifier = SoftmaxClassifier(12, 3)
    save_classifier(classifier, source / CLASSIFIER)
    export_model(str(source), tmp_path / "out")
    found = load_classifier(tmp_path / "out" / CLASSIFIER)
    assert torch.equal(found.linear.weight, classifier.linear.weight)
    texts = ["the cat saw the dog"]
    np.testing.assert_allclose(
        SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts),
        SentenceEncoder.load(source).encode(texts),
        atol=1e-5,
    )
