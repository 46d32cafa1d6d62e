"""The names of the tasks, where a command's help can have them before anything heavy is loaded."""

KINDS = ("sts", "retrieval", "pair_classification", "triplet", "reranking", "nli", "clustering")
"""The keys of TASKS, in its order."""
