"""What `make quickstart` promises, read from the run that it left."""

import json
from pathlib import Path

import pytest

from sbert_train.model.encoder import SentenceEncoder

RUN = Path(__file__).parents[1] / "runs" / "quickstart"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (RUN / "report.json").is_file(), reason="`make quickstart` has not been run here"),
]


def test_the_quickstart_gains_on_contrast_beyond_chance() -> None:
    report = json.loads((RUN / "report.json").read_text())
    gain = report["evaluation"]["tasks"][0]["differences"]["after"]["spearman_cosine"]
    assert gain["value"] > 0.1 and gain["low"] > 0


def test_the_tuned_model_finds_the_paraphrase_that_shares_no_words() -> None:
    texts = [
        "the bees decided to have a mutiny against their queen",
        "a man is playing the guitar on stage",
        "insects are an important food source for birds",
        "the parliament voted against the new budget",
        "she painted the fence last summer",
        "a queen of hearts is a playing card",
    ]
    encoder = SentenceEncoder.load(RUN / "model")
    query = encoder.encode("flying stinging insects rebelled in opposition to the matriarch")
    assert (encoder.encode(texts) @ query).argmax() == 0


def test_the_export_is_there_and_was_checked() -> None:
    checks = json.loads((RUN / "export" / "export.json").read_text())["checks"]
    assert len(checks) == 2 and all(figures["largest difference"] < 1e-5 for figures in checks.values())
