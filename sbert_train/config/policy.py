"""What a set does about rows that read well and hold something wrong."""

from typing import Literal

from pydantic import Field

from sbert_train.config.blocks import Block

Refusable = Literal["refuse", "drop"]
Tolerable = Literal["refuse", "drop", "keep"]


class PolicyConfig(Block):
    """What is done about a row with something wrong in it; whatever is dropped or kept is counted and told.

    refuse: the set is not loaded. drop: the row is left out. keep: it is trained on or evaluated all the same. A file
    that is broken, and labels of different kinds in one column, are always refused.
    """

    empty_text: Tolerable = Field(
        "drop", description="No text, or white space only. keep: as the empty text that it is."
    )
    unlabelled: Refusable = Field("drop", description="A label that is empty, null or -1.")
    wrong_score: Refusable = Field("refuse", description="A score that is no finite number.")
    score_out_of_range: Tolerable = Field(
        "refuse",
        description="A score outside of `score_range`. keep: as the end of the range that it is beyond.",
    )
    wrong_label: Refusable = Field(
        "refuse", description="A label that is no whole number, or none of the names in `labels`."
    )
    wrong_text: Refusable = Field("refuse", description="A number, a list or an object where a text belongs.")
