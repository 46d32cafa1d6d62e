"""The classifier that training with objective softmax leaves beside a model, as tasks ask it.

Shapes: N pairs, D dimensions, C classes.
"""

from pathlib import Path

import torch

from sbert_train.evaluation.encoding import Classify
from sbert_train.evaluation.metrics import Array
from sbert_train.objectives.softmax import CLASSIFIER, SoftmaxClassifier, load_classifier


def classifier_of(model_folder: Path) -> Classify | None:
    """The classifier beside the model in a folder; None where there is none.

    Raises ModelError, naming the file, where there is one that cannot be read.
    """
    folder = model_folder / CLASSIFIER
    return classify_with(load_classifier(folder)) if folder.is_dir() else None


def classify_with(classifier: SoftmaxClassifier) -> Classify:
    """The logits (N, C) that a classifier, as it is at the time, gives for pairs of embeddings, each (N, D)."""

    @torch.no_grad()
    def classify(u: Array, v: Array) -> Array:
        device = classifier.linear.weight.device
        pair = (torch.tensor(one, dtype=torch.float32, device=device) for one in (u, v))
        logits: Array = classifier.logits(*pair).cpu().numpy()
        return logits

    return classify
