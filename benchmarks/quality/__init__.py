"""Quality side by side with sentence-transformers: the same data, settings and seeds, judged by the same code.

`experiments` says what is trained, `peer` and `ours` train it, `score` judges what they left, and `record`
writes it down; `python -m benchmarks.quality --help` runs them.
"""
