"""The classifier of pairs by hand, against sentence-transformers' SoftmaxLoss, and saved and loaded again."""

import json
import math
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from sbert_train.errors import ModelError
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.softmax import SoftmaxClassifier, load_classifier, save_classifier
from tests.objectives.batches import (
    assert_finite_gradients,
    assert_same,
    assert_untouched_by_autocast,
    at,
    copies,
    random_vectors,
    rows,
)

LABELS = torch.tensor([0, 2, 1, 1, 0, 2])


def pairs(u: Tensor, v: Tensor, labels: Tensor = LABELS) -> RoleEmbeddings:
    return rows(labels, sentence1=u, sentence2=v)


class Columns(nn.Module):
    """Stands for a sentence-transformers model whose input holds its output."""

    device = torch.device("cpu")

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}


def test_the_loss_worked_by_hand() -> None:
    classifier = SoftmaxClassifier(2, 2)
    assert classifier.linear.weight.shape == (2, 6)
    with torch.no_grad():
        classifier.linear.weight.copy_(torch.tensor([[1.0, 2, 3, 4, 5, 6], [0.5, 0, 0, 0, 0, -1]]))
        classifier.linear.bias.copy_(torch.tensor([-10.0, 1.0]))
    batch = pairs(torch.tensor([[1.0, -1.0]]), torch.tensor([[0.5, 1.0]]), torch.tensor([1]))
    # u, v, |u - v| are (1, -1, 0.5, 1, 0.5, 2)
    logits = [1 - 2 + 1.5 + 4 + 2.5 + 12 - 10, 0.5 - 2 + 1]
    expected = math.log(sum(math.exp(logit) for logit in logits)) - logits[1]
    assert classifier(batch).item() == pytest.approx(expected, abs=1e-6)
    found = classifier.logits(batch.vectors["sentence1"], batch.vectors["sentence2"])
    assert found.tolist() == [pytest.approx(logits)]


@pytest.mark.parametrize(
    "concat", [("u", "v", "difference"), ("u", "v"), ("difference",), ("u", "v", "difference", "product")]
)
def test_values_and_gradients_equal_those_of_sentence_transformers(concat: tuple[str, ...]) -> None:
    ours = random_vectors((6, 4), (6, 4))
    theirs = copies(ours)
    classifier = SoftmaxClassifier(4, 3, concat)
    reference = losses.SoftmaxLoss(
        Columns(),  # type: ignore[arg-type]
        4,
        3,
        concatenation_sent_rep="u" in concat,
        concatenation_sent_difference="difference" in concat,
        concatenation_sent_multiplication="product" in concat,
    )
    reference.classifier.load_state_dict(classifier.linear.state_dict())
    expected = reference([{"vectors": vectors} for vectors in theirs], LABELS)
    assert isinstance(expected, Tensor)
    assert_same(classifier(pairs(*ours)), ours, expected, theirs)
    for name, weight in reference.classifier.named_parameters():
        own = classifier.linear.get_parameter(name)
        assert own.grad is not None and weight.grad is not None and weight.grad.abs().max() > 1e-3
        torch.testing.assert_close(own.grad, weight.grad, rtol=0, atol=1e-6)


def test_identical_vectors_and_a_single_class_give_finite_gradients() -> None:
    u, v = at(0, 90).requires_grad_(), at(0, 90).requires_grad_()
    loss = SoftmaxClassifier(2, 3, ["difference", "product"])(pairs(u, v, torch.tensor([1, 1])))
    assert_finite_gradients(loss, [u, v])


def test_under_autocast_the_loss_is_that_of_float32() -> None:
    u, v = random_vectors((6, 4), (6, 4))
    classifier = SoftmaxClassifier(4, 3)
    assert_untouched_by_autocast(lambda: classifier(pairs(u, v)))


@pytest.mark.parametrize("concat", [(), ("u", "u"), ("u", "sum")])
def test_parts_must_be_known_and_occur_once(concat: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected some of u, v, difference, product, each once; found"):
        SoftmaxClassifier(4, 3, concat)


def test_a_classifier_of_fewer_dimensions_reads_the_first_and_scales_them_where_it_was_trained_so() -> None:
    u, v = (one.float() for one in random_vectors((6, 8), (6, 8)))
    classifier = SoftmaxClassifier(4, 3, normalize=True)
    scaled = [one[:, :4] / one[:, :4].norm(dim=-1, keepdim=True) for one in (u, v)]
    expected = classifier.linear(torch.cat([*scaled, (scaled[0] - scaled[1]).abs()], dim=-1))
    torch.testing.assert_close(classifier.logits(u, v), expected)
    plain = SoftmaxClassifier(4, 3)
    plain.load_state_dict(classifier.state_dict())
    assert not torch.allclose(plain.logits(u, v), expected), "the lengths do matter"


def test_a_classifier_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    classifier = SoftmaxClassifier(4, 3, ("product", "u"))
    folder = tmp_path / "model" / "classifier"
    save_classifier(classifier, folder)
    assert json.loads((folder / "config.json").read_text()) == {
        "dimension": 4,
        "classes": 3,
        "concat": ["product", "u"],
        "normalize": False,
    }
    loaded = load_classifier(folder)
    u, v = [vectors.detach() for vectors in random_vectors((6, 4), (6, 4))]
    assert torch.equal(loaded.logits(u, v), classifier.logits(u, v))
    assert not torch.equal(SoftmaxClassifier(4, 3, ("product", "u")).logits(u, v), classifier.logits(u, v))


def test_its_files_can_be_read_by_others(tmp_path: Path) -> None:
    save_classifier(SoftmaxClassifier(4, 3), tmp_path)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("config.json", "model.safetensors")]
    (tmp_path / "other.txt").write_text("")
    assert modes == [stat.S_IMODE((tmp_path / "other.txt").stat().st_mode)] * 2


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    save_classifier(SoftmaxClassifier(4, 3), tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=rf"{name} is missing: the classifier is incomplete"):
        load_classifier(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"dimension": 4, "classes": 3}',
        '{"dimension": 0, "classes": 3, "concat": ["u"]}',
        '{"dimension": 4, "classes": true, "concat": ["u"]}',
        '{"dimension": 4, "classes": 3, "concat": "u"}',
        '{"dimension": 4, "classes": 3, "concat": []}',
        '{"dimension": 4, "classes": 3, "concat": ["u", "u"]}',
        '{"dimension": 4, "classes": 3, "concat": [["u"]]}',
    ],
)
def test_a_configuration_of_something_else_is_told(tmp_path: Path, content: str) -> None:
    save_classifier(SoftmaxClassifier(4, 3), tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(
        ModelError, match=r"config\.json: expected dimension and classes.*; found .*"
    ) as error:
        load_classifier(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "kind"), [("config.json", "JSON"), ("model.safetensors", "safetensors")])
def test_a_broken_file_is_named(tmp_path: Path, name: str, kind: str) -> None:
    save_classifier(SoftmaxClassifier(4, 3), tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:20])
    with pytest.raises(
        ModelError, match=rf"{name} cannot be read as {kind} .*: copy the model again"
    ) as error:
        load_classifier(tmp_path)
    assert "\n" not in str(error.value)


def test_weights_that_do_not_fit_the_configuration_are_told(tmp_path: Path) -> None:
    save_classifier(SoftmaxClassifier(4, 3), tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({"weight": weights["weight"][:2].clone()}, tmp_path / "model.safetensors")
    with pytest.raises(
        ModelError,
        match=r"model\.safetensors: expected the weights .*\(3, 12\).*; found \{'weight': \(2, 12\)\}",
    ):
        load_classifier(tmp_path)
