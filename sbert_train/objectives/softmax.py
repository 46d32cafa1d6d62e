"""Classification of pairs: a linear classifier over two embeddings tells the class of their pair.

B rows, D dimensions, C classes, P parts that are laid end to end.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from sbert_train.errors import ModelError
from sbert_train.objectives.embeddings import RoleEmbeddings

PARTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "difference": lambda u, v: (u - v).abs(),
    "product": lambda u, v: u * v,
}
CLASSIFIER = "classifier"
"""The folder of a model's classifier within that of the model."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"


class SoftmaxClassifier(nn.Module):
    """The cross-entropy of the classes of pairs, under a classifier that is trained along with the encoder.

        o = softmax(W (u, v, |u - v|) + b)

    Reimers & Gurevych 2019, "Sentence-BERT", section 3, "Classification Objective Function", who write no bias; their
    code and sentence-transformers' SoftmaxLoss have one.

    Attributes:
        dimension: D.
        classes: C.
        concat: names of PARTS, in the order in which W reads them.
        normalize: whether the embeddings are scaled to length 1 first, as those of a Matryoshka loss are.
    """

    def __init__(
        self,
        dimension: int,
        classes: int,
        concat: Sequence[str] = ("u", "v", "difference"),
        *,
        normalize: bool = False,
    ) -> None:
        """Make a classifier with random weights.

        Raises:
            ValueError: `concat` is empty, or a name in it is unknown or occurs twice.
        """
        super().__init__()
        if not _are_parts(concat):
            raise ValueError(f"concat: expected some of {', '.join(PARTS)}, each once; found {list(concat)}")
        self.dimension, self.classes, self.concat = dimension, classes, tuple(concat)
        self.normalize = normalize
        self.linear = nn.Linear(len(concat) * dimension, classes)

    def forward(self, batch: RoleEmbeddings) -> Tensor:
        """The mean cross-entropy of a batch, in nats.

        Args:
            batch: roles sentence1 (u) and sentence2 (v); labels (B,) int64 classes from 0 to C - 1.
        """
        assert batch.labels is not None
        return F.cross_entropy(
            self.logits(batch.vectors["sentence1"], batch.vectors["sentence2"]), batch.labels
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What it is made from, as JSON can hold it."""
        return {
            "dimension": self.dimension,
            "classes": self.classes,
            "concat": list(self.concat),
            "normalize": self.normalize,
        }

    def logits(self, u: Tensor, v: Tensor) -> Tensor:
        """(B, E), (B, E) -> (B, C) float32, before the softmax; of E >= D dimensions it reads the first D."""
        with torch.autocast(u.device.type, enabled=False):
            u, v = u[..., : self.dimension].float(), v[..., : self.dimension].float()
            if self.normalize:
                u, v = F.normalize(u, dim=-1), F.normalize(v, dim=-1)
            parts = torch.cat([PARTS[name](u, v) for name in self.concat], dim=-1)
            logits: Tensor = self.linear(parts)
            return logits


def save_classifier(classifier: SoftmaxClassifier, folder: Path) -> None:
    """Write config.json (its settings) and model.safetensors into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(classifier.settings, indent=2) + "\n", encoding="utf-8")
    save_file(
        {name: weight.contiguous() for name, weight in classifier.linear.state_dict().items()},
        folder / WEIGHTS,
    )
    # safetensors keeps its files to their owner, but a model is there to be served by someone else, too.
    (folder / WEIGHTS).chmod((folder / CONFIG).stat().st_mode)


def load_classifier(folder: Path) -> SoftmaxClassifier:
    """Read what `save_classifier` wrote, onto the CPU.

    Raises:
        ModelError: a file is missing or broken; the message names it.
    """
    classifier = _from_config(folder / CONFIG)
    file = folder / WEIGHTS
    expected = {name: tuple(weight.shape) for name, weight in classifier.linear.state_dict().items()}
    try:
        weights = load_file(file)
    except FileNotFoundError as error:
        raise _missing(file) from error
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file} cannot be read as safetensors ({error}): copy the model again") from error
    found = {name: tuple(weight.shape) for name, weight in weights.items()}
    if found != expected:
        raise ModelError(f"{file}: expected the weights {expected}, as {CONFIG} says; found {found}")
    classifier.linear.load_state_dict(weights)
    return classifier


def _from_config(file: Path) -> SoftmaxClassifier:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _missing(file) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read as JSON ({error}): copy the model again") from error
    if not _is_config(config):
        raise ModelError(
            f"{file}: expected dimension and classes, numbers from 1, concat, a list of some of {', '.join(PARTS)}, "
            f"and normalize, true or false; found {json.dumps(config)[:120]}"
        )
    return SoftmaxClassifier(**config)


def _is_config(config: Any) -> bool:
    if not isinstance(config, dict) or set(config) != {"dimension", "classes", "concat", "normalize"}:
        return False
    sizes, concat = (config["dimension"], config["classes"]), config["concat"]
    are_sizes = all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes)
    are_flags = isinstance(config["normalize"], bool)
    return are_sizes and are_flags and isinstance(concat, list) and _are_parts(concat)


def _are_parts(concat: Sequence[object]) -> bool:
    """Whether these are names of PARTS, at least one, and each once."""
    return len(concat) > 0 and all(name in list(PARTS) and concat.count(name) == 1 for name in concat)


def _missing(file: Path) -> ModelError:
    return ModelError(f"{file} is missing: the classifier is incomplete, copy it again or train it anew")
