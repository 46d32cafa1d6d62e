"""report.html of real runs: it is there, it is theirs, and it goes when a new run begins."""

import json
from pathlib import Path

import numpy as np
import pytest

from sbert_train.model.encoder import SentenceEncoder
from sbert_train.training.fit import fit
from tests.reporting.pages import Parsed
from tests.training.interruptions import killed_in_step, trained
from tests.training.runs import config, run, sentences


def test_the_page_shows_what_the_report_says_and_the_texts_it_is_about(
    tmp_path: Path, tiny_model: Path
) -> None:
    result, _ = run(tmp_path, tiny_model, train={"num_train_epochs": 2})
    report = json.loads(result.folder.report.read_text())
    parsed = Parsed.of(result.folder.page.read_text(encoding="utf-8"))
    assert parsed.all("h1")[0].text.endswith(report["verdict"])
    assert result.folder.config.read_text().strip() == parsed.all("pre")[0].text
    cells = [one.text for one in parsed.all("td")]
    assert f"{report['best']['pairs']['spearman_cosine']:.4f}".replace("-", "\N{MINUS SIGN}") in cells
    texts = {one.text for one in parsed.all("dd")}
    quoted = [row for row in sentences(24, 100) if {row[0], row[1]} <= texts]
    assert 10 <= len(quoted) <= 20, "ten that improved and ten that got worse, if there were so many"
    titles = [one.text for one in parsed.all("figcaption")]
    for title in ("pairs: spearman_cosine", "Loss", "Learning rate", "Norm of the gradient",
                  "Cosines of the base model", "Cosine of the tuned model against gold score",
                  "Tokens of the training texts"):  # fmt: skip
        assert title in titles, title


def test_the_lengths_are_those_of_the_training_texts(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model, model={"base": str(tiny_model), "max_length": 9})
    tokenizer = SentenceEncoder.load(tiny_model).tokenizer
    anchors = np.array([min(9, len(tokenizer(row[0])["input_ids"])) for row in sentences(48)])
    assert (anchors == 9).any(), "the premise: some are cut"
    text = Parsed.of(result.folder.page.read_text()).text
    assert (
        f"anchor: 48 texts of {anchors.min()} to 9 tokens, half of them at most {int(np.median(anchors))}, "
        f"{(anchors == 9).mean():.1%} at the limit"
    ) in text
    assert "max_length 9" in text


def test_a_run_without_eval_sets_has_a_page_that_says_so(tmp_path: Path, tiny_model: Path) -> None:
    data = config(tmp_path, tiny_model).data.model_dump() | {"eval": []}
    result, _ = run(tmp_path, tiny_model, data=data)
    parsed = Parsed.of(result.folder.page.read_text())
    report = json.loads(result.folder.report.read_text())
    assert report["verdict"] == parsed.all("h1")[0].text and "was not measured" in report["verdict"]
    assert report["baseline"] == report["best"] == report["final"] == report["deltas"] == {}


@pytest.mark.parametrize("model", [{"freeze": "backbone", "head": {"dim": 8}}, {"head": {"dim": 8}}])
def test_a_run_with_a_head_has_a_page(tmp_path: Path, tiny_model: Path, model: dict[str, object]) -> None:
    objective = {"name": "in_batch_negatives", "matryoshka_dims": [8, 4]}
    result, _ = run(tmp_path, tiny_model, model={"base": str(tiny_model), **model}, objective=objective)
    parsed = Parsed.of(result.folder.page.read_text())
    assert [one.text for one in parsed.all("h3")] == ["pairs"], (
        "examples are shown once, not for each dimension"
    )
    assert "pairs_dim4: spearman_cosine" in [one.text for one in parsed.all("figcaption")]


def test_the_page_of_an_earlier_run_goes_when_another_begins(tmp_path: Path, tiny_model: Path) -> None:
    result, _ = run(tmp_path, tiny_model)
    assert result.folder.page.is_file()
    with killed_in_step(2):
        trained(config(tmp_path, tiny_model, seed=7), overwrite=True)
    assert not result.folder.page.exists() and not result.folder.report.exists()


def test_a_page_alone_keeps_another_run_out(tmp_path: Path, tiny_model: Path) -> None:
    """As the rest of what a run leaves does."""
    result, _ = run(tmp_path, tiny_model)
    for other in (result.folder.log, result.folder.report, result.folder.config):
        other.unlink()
    for folder in (result.folder.model, result.folder.checkpoints):
        folder.rename(tmp_path / folder.name)
    with pytest.raises(Exception, match="holds a run with another configuration"):
        fit(config(tmp_path, tiny_model), say=lambda line: None)
