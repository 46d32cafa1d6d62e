"""Fixtures that all rooms share."""

from pathlib import Path

import pytest

from sbert_train.model.encoder import SentenceEncoder
from tests.tiny import make_encoder


@pytest.fixture
def encoder() -> SentenceEncoder:
    """A tiny BERT encoder with mean pooling."""
    return make_encoder()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BERT encoder, in sentence-transformers layout."""
    folder = tmp_path_factory.mktemp("model") / "tiny-bert"
    make_encoder().save(folder)
    return folder
