"""What a task asks of a model: embeddings of texts in their role, once per distinct text, and classes of pairs.

Shapes: N texts or pairs, D dimensions, C classes.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sbert_train.errors import EvaluationError
from sbert_train.evaluation.metrics import Array, check_embeddings

# encode(texts, role) -> float32 (N, D), as the model embeds texts in that role: the role selects the prompt.
Encode = Callable[[Sequence[str], str], npt.NDArray[np.float32]]

# classify(u, v) -> logits (N, C) of pairs of embeddings, each (N, D): the classifier that was trained with the model.
Classify = Callable[[Array, Array], Array]


def encode_distinct(encode: Encode, texts: Sequence[str], role: str) -> Array:
    """Embeddings (N, D) of texts in a role, in their order; texts that are equal are encoded once.

    Raises EvaluationError if encode gives another shape than one vector per text, or values that are not
    finite.
    """
    distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    embeddings = check_embeddings(np.asarray(encode(list(distinct), role)), f"embeddings of role {role}")
    if len(embeddings) != len(distinct):
        raise EvaluationError(
            f"embeddings of role {role}: expected {len(distinct):,} vectors, one for each text, "
            f"found {len(embeddings):,}; encode must keep every text and its place"
        )
    return embeddings[[distinct[text] for text in texts]]
