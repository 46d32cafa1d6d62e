"""Cosine regression: the cosine of two embeddings is to equal a given score. B rows, D dimensions."""

from torch import Tensor
from torch.nn import functional as F

from sbert_train.objectives.embeddings import RoleEmbeddings
from sbert_train.objectives.precision import in_float32


@in_float32
def cosine_regression(batch: RoleEmbeddings) -> Tensor:
    """The mean squared error of cosine similarities against scores.

        L = 1/B sum_i (cos(u_i, v_i) - y_i)^2

    Reimers & Gurevych 2019, "Sentence-BERT", section 3, "Regression Objective Function".

    Args:
        batch: roles sentence1 and sentence2; labels (B,) scores, usually mapped to [0, 1] by score_range.

    Returns:
        A scalar in [0, 4] for scores in [-1, 1].
    """
    assert batch.labels is not None
    cosines = F.cosine_similarity(batch.vectors["sentence1"], batch.vectors["sentence2"])
    return F.mse_loss(cosines, batch.labels.float())
