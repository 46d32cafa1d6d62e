"""Figures equal plain loops over the same embeddings, and the peer's own arithmetic."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

from benchmarks import data
from benchmarks.losses import CLASSES, count_rows
from benchmarks.quality import score
from benchmarks.quality.experiments import EXPERIMENTS
from sbert_train.model.encoder import SentenceEncoder


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_reranking_equals_a_plain_loop_over_questions(folder: Path, encoder: SentenceEncoder) -> None:
    precisions, reciprocals = [], []
    for question, answers in data.trecqa_candidates(folder, "test").items():
        asked = encoder.encode(question)
        ranking = sorted(answers, key=lambda answer: -cosine(asked, encoder.encode(answer[0])))
        labels = [label for _, label in ranking]
        # Each question of the stand-in has one answer, so its average precision is 1 / rank, too.
        assert sum(labels) == 1
        precisions.append(1 / (1 + labels.index(1)))
        reciprocals.append(1 / (1 + labels.index(1)))
    assert score.trecqa(encoder, folder) == {
        "trecqa_test_map": pytest.approx(np.mean(precisions)),
        "trecqa_test_mrr": pytest.approx(np.mean(reciprocals)),
    }


def test_all_positives_count_for_the_average_precision_and_the_first_for_the_rank(
    folder: Path, encoder: SentenceEncoder
) -> None:
    question, right, wrong = "who saw the dog ?", "the man saw the dog .", "the cat sat on the mat ."
    similar = {text: cosine(encoder.encode(question), encoder.encode(text)) for text in (right, wrong)}
    far, near = sorted(similar, key=lambda text: similar[text])
    file = folder / "trecqa-test.jsonl"
    # The question itself is the nearest answer there is, so the ranking is positive, negative, positive.
    ranked = [(question, 1), (near, 0), (far, 1)]
    data.write_jsonl(file, [{"question": question, "answer": text, "label": label} for text, label in ranked])
    found = score.trecqa(encoder, folder)
    assert found["trecqa_test_map"] == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert found["trecqa_test_mrr"] == 1.0


def test_sts_figures_are_those_of_the_cosine(folder: Path, encoder: SentenceEncoder) -> None:
    rows = data.stsb(folder, "dev")
    cosines = [cosine(encoder.encode(row["sentence1"]), encoder.encode(row["sentence2"])) for row in rows]
    gold = [row["score"] for row in rows]
    found = score.stsb(encoder, folder, "dev")
    assert found["stsb_dev_spearman"] == pytest.approx(spearmanr(cosines, gold).statistic)
    assert found["stsb_dev_pearson"] == pytest.approx(np.corrcoef(cosines, gold)[0, 1], abs=1e-6)


def test_classes_are_those_of_the_peers_softmax_loss(tiny_model: Path) -> None:
    model = SentenceTransformer(str(tiny_model), device="cpu")
    loss = SoftmaxLoss(model, model.get_embedding_dimension() or 0, num_labels=CLASSES)
    first = ["a cat sat", "a dog ran", "the man slept", "rain", "a tree", "two red apple", "city", "never"]
    second = [*first[3:], *first[:3]]
    features = loss.classifier.in_features
    rows_seen = count_rows(loss)
    with torch.no_grad():
        loss.classifier.weight.normal_(generator=torch.Generator().manual_seed(1))
        loss.classifier.weight[:, -features // 3 :] *= 100  # so that |u - v| decides, too
        _, logits = loss([model.preprocess(first), model.preprocess(second)], None)
        # Embeddings of a random model are much alike: without this, all pairs would be of one class.
        loss.classifier.bias.sub_(logits.mean(dim=0))
        (u, v), logits = loss([model.preprocess(first), model.preprocess(second)], None)
    found = score.classify(
        u.numpy(), v.numpy(), loss.classifier.weight.detach().numpy(), loss.classifier.bias.detach().numpy()
    )
    assert len(set(found.tolist())) > 1, "one class for all would prove nothing"
    assert found.tolist() == logits.argmax(dim=1).tolist()
    assert rows_seen() == 16, "eight pairs, twice"


def test_accuracy_is_the_share_of_pairs_whose_class_is_found(
    folder: Path, encoder: SentenceEncoder, tmp_path: Path
) -> None:
    file = tmp_path / "classifier.safetensors"
    weight = np.zeros((CLASSES, 3 * encoder.dimension), dtype=np.float32)
    always = np.zeros(CLASSES, dtype=np.float32)
    always[data.CONTRADICTION] = 1.0
    save_file({"weight": weight, "bias": always}, file)
    labels = [row["label"] for row in data.snli_labelled(folder, "test")]
    assert labels.count(data.CONTRADICTION) == 3 and len(labels) == 4
    assert score.snli_accuracy(encoder, folder, file) == {"snli_test_accuracy": 0.75}


def test_a_saved_model_gets_all_figures_of_its_experiment(
    folder: Path, tiny_model: Path, tmp_path: Path
) -> None:
    found = score.figures(str(tiny_model), ("stsb_test", "stsb_dev", "trecqa_test"), folder)
    kinds = ("spearman", "pearson")
    assert list(found) == [
        *(f"stsb_{split}_{kind}" for split in ("test", "dev") for kind in kinds),
        "trecqa_test_map",
        "trecqa_test_mrr",
    ]


def test_accuracy_without_a_classifier_is_an_error(folder: Path, encoder: SentenceEncoder) -> None:
    assert "snli_test" in score.OF_A_CLASSIFIER
    with pytest.raises(ValueError, match="expected a trained classifier"):
        score.FIGURES["snli_test"](encoder, folder, None)


def test_every_figure_that_an_experiment_wants_is_there() -> None:
    assert {name for experiment in EXPERIMENTS.values() for name in experiment.figures} == set(score.FIGURES)
