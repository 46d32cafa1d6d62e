"""Our objectives under the names that users of the Hub search for: those of sentence-transformers' losses."""

from collections.abc import Mapping

from sbert_train.objectives.registry import ObjectiveSpec

_NAMES: Mapping[str, str] = {
    "cosine_regression": "CosineSimilarityLoss",
    "cosent": "CoSENTLoss",
    "angle": "AnglELoss",
    "triplet": "TripletLoss",
    "softmax": "SoftmaxLoss",
    "contrastive": "ContrastiveLoss",
    "online_contrastive": "OnlineContrastiveLoss",
    "embedding_distillation": "EmbedDistillLoss",
    "margin_mse": "MarginMSELoss",
}
_MINED = {"hard": "BatchHardTripletLoss", "semi_hard": "BatchSemiHardTripletLoss"}


def loss_names(spec: ObjectiveSpec) -> tuple[str, ...]:
    """The losses of sentence-transformers that an objective equals in value and gradient (`contrastive` is twice
    theirs), the tests of each objective hold it to that; empty where none does."""
    name = _NAMES.get(spec.name)
    if spec.name == "batch_triplet":
        name = _MINED[spec.options.get("mining", "hard")]
    elif spec.name == "in_batch_negatives":
        name = _in_batch(spec)
    if name is None:
        return ()
    return (name,) if spec.dims is None else ("MatryoshkaLoss", name)


def _in_batch(spec: ObjectiveSpec) -> str | None:
    options = spec.options
    changed = bool(options.get("symmetric")), "hardness" in options
    if options.get("learnable_scale") or all(changed):
        return None
    if "guide_margin" in options:
        return None if any(changed) else "GISTEmbedLoss"
    return "MultipleNegativesRankingLoss"
