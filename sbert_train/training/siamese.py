"""What is trained: one shared encoder, and the objectives with whatever weights they have of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from sbert_train.data.batch import TextBatch
from sbert_train.evaluation.classifier import classify_with
from sbert_train.evaluation.encoding import Classify
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.registry import Objective
from sbert_train.objectives.softmax import CLASSIFIER, SoftmaxClassifier, load_classifier, save_classifier


class SiameseModel(nn.Module):
    """A batch of texts -> its loss. As one module, so that the weights of an objective (a classifier, a scale) are
    optimised, saved in checkpoints, loaded again and shared out over processes with those of the encoder."""

    encoder: SentenceEncoder

    def __init__(
        self, encoder: SentenceEncoder, objectives: Sequence[Objective], *, frozen: bool = False
    ) -> None:
        """Put them together.

        Args:
            frozen: batches bring the pooled vectors of a frozen backbone, so that of the encoder only the head is run,
                if there is one. It alone is a part of this module then: what neither trains nor runs needs no place in
                a checkpoint, and no look at each step.
        """
        super().__init__()
        self.__dict__["encoder"] = encoder  # not as a part, which `weights` is
        self.weights = encoder.head if frozen else encoder
        self.objectives = nn.ModuleList(objectives)

    def forward(self, batch: TextBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The scalar loss of a batch, by the objective of its rows, and its embeddings by role."""
        vectors: dict[str, Tensor] = self.encoder(batch)
        loss: Tensor = self.objectives[batch.objective](RoleEmbeddings.of(batch, vectors))
        return loss, vectors

    @property
    def classifier(self) -> SoftmaxClassifier | None:
        """The classifier of a softmax objective: of the largest dimension, where it is a Matryoshka loss."""
        found = [module for module in self.objectives.modules() if isinstance(module, SoftmaxClassifier)]
        return max(found, key=lambda one: one.dimension, default=None)

    @property
    def classify(self) -> Classify | None:
        """The classifier as tasks ask it; None where there is none."""
        return None if self.classifier is None else classify_with(self.classifier)

    def save(self, folder: Path) -> None:
        """Write the encoder, and beside it the classifier where there is one."""
        self.encoder.save(folder)
        if self.classifier is not None:
            save_classifier(self.classifier, folder / CLASSIFIER)

    def restore_classifier(self, base: Path) -> str | None:
        """Take up the classifier that lies beside a base, where it has the shape of this one.

        Returns:
            What was done, in words; None where there is no classifier here or there.

        Raises:
            ModelError: the one beside the base is broken.
        """
        own = self.classifier
        if own is None:
            return (
                "of the base: left behind, as no objective trains it"
                if (base / CLASSIFIER).is_dir()
                else None
            )
        if not (base / CLASSIFIER).is_dir():
            return f"new, of {own.classes} classes"
        found = load_classifier(base / CLASSIFIER)
        if found.settings != own.settings:
            return f"new, of {own.classes} classes: the one of the base is another ({found.settings})"
        own.load_state_dict(found.state_dict())
        return f"of {own.classes} classes, that of the base"

    def activation_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        """What Trainer calls for train.gradient_checkpointing."""
        self.encoder.activation_checkpointing_enable(*args, **kwargs)

    gradient_checkpointing_enable = activation_checkpointing_enable
