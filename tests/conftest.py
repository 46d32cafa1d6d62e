"""Fixtures that all rooms share."""

import os
from pathlib import Path

import pytest
import torch

from sbert_train.model.encoder import SentenceEncoder
from tests.tiny import make_encoder

# Tiny models gain nothing from threads, and the workers of pytest-xdist would wait for each other's.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start


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
