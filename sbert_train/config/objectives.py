"""The objectives that a run, or one of its data sets, can name: one block for each, with its options."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from sbert_train.config.blocks import AboveZero, AtLeastZero, Block, Count, Text, TreePath

Distance = Literal["cosine", "euclidean", "manhattan"]
Concat = Literal["u", "v", "difference", "product"]

_DISTANCE = "Distance of two embeddings; cosine: 1 - cosine similarity."


class OfAnyObjective(Block):
    """What all objectives can be told."""

    matryoshka_dims: tuple[Count, ...] | None = Field(
        None,
        min_length=1,
        description="The loss is the sum over the first so many dimensions of the embeddings, scaled to length 1, such "
        "as `[384, 192, 96]`; evaluation is at each of them, too. null: all dimensions only.",
    )
    matryoshka_weights: tuple[AboveZero, ...] | None = Field(
        None, description="The weight of each of `matryoshka_dims` in the sum. null: 1 each."
    )

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        dims, weights = self.matryoshka_dims, self.matryoshka_weights
        if dims is not None and len(set(dims)) < len(dims):
            yield ("matryoshka_dims",), "expected each dimension once"
        if weights is not None and dims is None:
            yield ("matryoshka_weights",), "expected matryoshka_dims, too"
        elif weights is not None and dims is not None and len(weights) != len(dims):
            yield ("matryoshka_weights",), f"expected {len(dims)} numbers, one for each of matryoshka_dims"


class InBatchNegatives(OfAnyObjective):
    """Each anchor must find its positive among all positives and negatives of the batch.

    Roles: anchor, positive; negative is used where there is one.
    """

    name: Literal["in_batch_negatives"] = Field(description="The objective.")
    scale: AboveZero | None = Field(
        None,
        description="Factor on the similarities before the softmax; 1 / temperature. null: 20, unless temperature is "
        "given.",
    )
    temperature: AboveZero | None = Field(None, description="Another way to write the scale: 1 / scale.")
    learnable_scale: bool = Field(
        False, description="Train the scale, from its value here on; it is kept to at most 100."
    )
    similarity: Literal["cosine", "dot"] = Field("cosine", description="Similarity of two embeddings.")
    symmetric: bool = Field(
        False, description="Add the loss of each positive finding its anchor, and average."
    )
    gather: bool = Field(True, description="Use the texts of all processes as negatives, with gradient.")
    mask_identical: bool = Field(
        True, description="A text equal to the positive or the anchor, prompts included, is no negative."
    )
    hardness: Literal["none", "in_batch", "hard", "all"] = Field(
        "none",
        description="Which negatives weigh more the closer they are: those of other rows, the row's own "
        "`negative`, or both.",
    )
    hardness_strength: AboveZero | None = Field(
        None,
        description="Times the cosine, it is added to their logits; 9 and 5 are values of the literature.",
    )
    guide: Text | None = Field(
        None,
        description="A model whose similarities tell which negatives are likely false: `self` for the model as it "
        "trains, else a Hub id, a folder or package://module/folder, which embeds all texts once.",
    )
    guide_margin: AtLeastZero = Field(
        0.0, description="A negative closer to the anchor than its positive less this much is left out."
    )
    margin_strategy: Literal["absolute", "relative"] = Field(
        "absolute", description="Of guide_margin: a similarity, or a share of the positive's similarity."
    )

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        yield from super().wrong_keys()
        if self.scale is not None and self.temperature is not None:
            yield ("temperature",), "expected scale or temperature (1 / scale), not both"
        if self.hardness == "none" and self.hardness_strength is not None:
            yield ("hardness_strength",), "expected hardness (in_batch, hard or all), too"
        if self.hardness != "none" and self.hardness_strength is None:
            yield ("hardness",), "expected hardness_strength, such as 9, too"
        for name in ("guide_margin", "margin_strategy"):
            if self.guide is None and name in self.model_fields_set:
                default = type(self).model_fields[name].default
                if getattr(self, name) != default:
                    yield (name,), "expected guide (self, or a model), too"


class CosineRegression(OfAnyObjective):
    """The cosine of two embeddings must equal their score.

    Roles: sentence1, sentence2, score from -1 to 1; `score_range` maps another scale to 0 to 1, and labels of -1 and 1
    are targets as they are.
    """

    name: Literal["cosine_regression"] = Field(description="The objective.")


class Cosent(OfAnyObjective):
    """Pairs with a higher score must be closer than pairs with a lower one.

    Roles: sentence1, sentence2, score on any scale.
    """

    name: Literal["cosent"] = Field(description="The objective.")
    scale: AboveZero = Field(20.0, description="Factor on the similarities.")


class Angle(OfAnyObjective):
    """As cosent, by the angle of the embeddings taken as complex numbers.

    Roles: sentence1, sentence2, score on any scale.
    """

    name: Literal["angle"] = Field(description="The objective.")
    scale: AboveZero = Field(20.0, description="Factor on the similarities.")


class Triplet(OfAnyObjective):
    """The anchor must be closer to its positive than to its negative, by a margin.

    Roles: anchor, positive, negative.
    """

    name: Literal["triplet"] = Field(description="The objective.")
    distance: Distance = Field("euclidean", description=_DISTANCE)
    margin: AboveZero = Field(
        1.0, description="By how much; 1 as in Sentence-BERT. Cosine distances reach from 0 to 2."
    )


class BatchTriplet(OfAnyObjective):
    """As triplet, with positives and negatives found in the batch by their labels.

    Roles: sentence1, label. Batches hold at least two rows of each label that they hold, as far as there are.
    """

    name: Literal["batch_triplet"] = Field(description="The objective.")
    mining: Literal["hard", "semi_hard"] = Field(
        "hard",
        description="hard: the farthest positive and the closest negative of each row. semi_hard: for each positive "
        "the closest negative that is farther than it.",
    )
    distance: Literal["euclidean", "cosine"] = Field("euclidean", description=_DISTANCE)
    margin: AboveZero = Field(1.0, description="By how much the negative must be farther.")


class Softmax(OfAnyObjective):
    """A classifier over both embeddings and their difference must name the label.

    Roles: sentence1, sentence2, label (0, 1, 2, ...). The classifier is saved in the model's folder, under
    `classifier`, and taken up again from there when the base has one.
    """

    name: Literal["softmax"] = Field(description="The objective.")
    concat: tuple[Concat, ...] = Field(
        ("u", "v", "difference"),
        min_length=1,
        description="What the classifier sees, one behind the other: u, v, their absolute difference, their product.",
    )

    def wrong_keys(self) -> Iterable[tuple[TreePath, str]]:
        yield from super().wrong_keys()
        if len(set(self.concat)) < len(self.concat):
            yield ("concat",), "expected each part once"


class Contrastive(OfAnyObjective):
    """Pairs of label 1 must be close, pairs of label 0 at least a margin apart.

    Roles: sentence1, sentence2, label (0 or 1).
    """

    name: Literal["contrastive"] = Field(description="The objective.")
    distance: Distance = Field("cosine", description=_DISTANCE)
    margin: AboveZero = Field(0.5, description="The distance beyond which pairs of label 0 are left alone.")


class OnlineContrastive(OfAnyObjective):
    """As contrastive, over the hard pairs of a batch only, summed.

    Roles: sentence1, sentence2, label (0 or 1).
    """

    name: Literal["online_contrastive"] = Field(description="The objective.")
    distance: Distance = Field("cosine", description=_DISTANCE)
    margin: AboveZero = Field(0.5, description="The distance beyond which pairs of label 0 are left alone.")


class EmbeddingDistillation(OfAnyObjective):
    """Embeddings must equal those of a teacher.

    Roles: any texts. The teacher embeds them once; where its embeddings have more dimensions than the model's, they are
    projected to as many of their principal components.
    """

    name: Literal["embedding_distillation"] = Field(description="The objective.")
    teacher: Text = Field(description="The teacher: a Hub id, a folder or package://module/folder.")
    distance: Literal["mse", "cosine"] = Field(
        "mse", description="mse: the mean squared error over dimensions. cosine: 1 - cosine similarity."
    )


class MarginMse(OfAnyObjective):
    """How much closer the positive is than the negative must equal a teacher's margin.

    Roles: anchor, positive, negative, score: the teacher's score of the positive less that of the negative, or the
    columns of all its scores, positive first.
    """

    name: Literal["margin_mse"] = Field(description="The objective.")
    similarity: Literal["dot", "cosine"] = Field("dot", description="Similarity of two embeddings.")


Objective = Annotated[
    InBatchNegatives
    | CosineRegression
    | Cosent
    | Angle
    | Triplet
    | BatchTriplet
    | Softmax
    | Contrastive
    | OnlineContrastive
    | EmbeddingDistillation
    | MarginMse,
    Field(discriminator="name"),
]
