"""Speed side by side with sentence-transformers: the same rows in the same order, in alternating pairs of processes.

`tables` says what is measured and how each table reads, `peer`, `ours`, `encoding` and `matmul` measure it in a process
of their own, `queue` runs them in turn and writes down what they say, `page` puts it together;
`python -m benchmarks.speed --help` lists the commands.
"""

# Before torch is imported anywhere:
from benchmarks.speed.started import seconds_since_start as seconds_since_start
