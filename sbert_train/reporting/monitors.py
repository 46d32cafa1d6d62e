"""What each figure that is monitored is called, and how it is read: docs/monitors.md in short."""

from dataclasses import dataclass

from sbert_train.reporting.verdict import MINUS


@dataclass(frozen=True)
class Monitor:
    """A figure of `log.jsonl`, for those who have not met it."""

    name: str
    what: str
    range: str
    which_way: str

    @property
    def phrase(self) -> str:
        """What a page says below its chart."""
        return f"{self.what[0].upper()}{self.what[1:]}, {self.range}; {self.which_way}."


GRADIENT = Monitor(
    "norm of the gradient", "norm before it is cut to train.max_grad_norm", "from 0", "steady is good"
)
MONITORS = {
    "alignment": Monitor("alignment", "mean squared distance of positives", "0 to 4", "lower is better"),
    "uniformity": Monitor(
        "uniformity",
        f"how evenly texts spread: log of the mean of exp({MINUS}2 d²) over random pairs",
        f"{MINUS}8 to 0, about {MINUS}4 at best",
        "lower is better",
    ),
    "mean_cosine": Monitor(
        "mean cosine of random pairs",
        "how alike texts are that have nothing to do with each other",
        f"{MINUS}1 to 1",
        "near 0 is good, near 1 all texts are alike",
    ),
    "effective_rank": Monitor("effective rank", "dimensions in use", "1 to 128 at most", "higher is richer"),
    "similarity_std": Monitor(
        "spread of predicted similarities",
        "standard deviation of the cosines of the rows' own pairs",
        "0 to 1",
        "near 0 nothing is told apart",
    ),
    "false_negatives": Monitor(
        "likely false negatives",
        "share of in-batch negatives nearer to the anchor than its positive",
        "0 to 1, chance 0.5",
        "lower is better, and what stays may mean the same as the anchor",
    ),
}
"""By the key of `log.jsonl`, less `monitor_`, which is that of `monitors` in report.json."""


def name_of(key: str) -> str:
    """What a monitored figure is called; its key in words where it is not known."""
    return MONITORS[key].name if key in MONITORS else key.replace("_", " ")
