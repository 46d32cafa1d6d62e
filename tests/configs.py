"""Configurations for tests, and what loading one says."""

from pathlib import Path

import pytest

from sbert_train.config import RunConfig, load_config
from sbert_train.errors import ConfigError

SMALLEST = """
output_dir: runs/x
model: {base: some/model}
data: {train: [{source: pairs.csv}]}
objective: {name: in_batch_negatives}
"""


EVERY_KEY = """
output_dir: runs/nli
seed: 7
model:
  base: package://module/folder
  revision: main
  trust_remote_code: no
  pooling: cls
  max_length: 64
  head: {dim: 256, activation: gelu, dropout: 0.1, layers: 2, shared: no}
  normalize: off
  freeze: none
  lora: {r: 4, alpha: 8, dropout: 0.0, target_modules: [query, value]}
  prompts: {anchor: "query: "}
data:
  train:
    - {name: a, source: stanfordnlp/snli, subset: plain, split: test, columns: {anchor: premise, negative: [n1, n2]},
       where: {label: 0, lang: [en, no]}, score_range: [0, 5], weight: 2, limit: 10,
       policy: {empty_text: keep, unlabelled: refuse, wrong_score: drop, score_out_of_range: keep, wrong_label: drop,
         wrong_text: drop}, labels: [no, yes],
       objective: {name: cosent, scale: 30}}
    - {source: b.csv}
  eval:
    - {name: stsb, task: sts, source: dev.csv, subset: null, split: train, columns: {}, where: {},
       score_range: [0, 5], limit: 3}
  mixing: {strategy: weighted, datasets_per_batch: 1}
  no_duplicates: false
  streaming: off
objective: {name: in_batch_negatives, scale: 1e1, similarity: dot, symmetric: yes, gather: no, mask_identical: off,
  hardness: hard, hardness_strength: 5, guide: self, guide_margin: 0.1, margin_strategy: relative, temperature: null,
  learnable_scale: off, matryoshka_dims: [8, 4], matryoshka_weights: [1, 0.5]}
train: {learning_rate: 2e-5, eval_strategy: no, bf16: on}
engine: {packing: padded, precision: fp32, gradient_cache: null, compile: false}
"""


def load(
    folder: Path, text: str | bytes, *overrides: str, environ: dict[str, str] | None = None
) -> RunConfig:
    """What a file with this text says."""
    file = folder / "run.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(file, overrides, environ or {})


def complaints(
    folder: Path, text: str | bytes, *overrides: str, environ: dict[str, str] | None = None
) -> list[str]:
    """The lines of the error that this text raises, without the folder."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *overrides, environ=environ)
    return str(caught.value).replace(str(folder) + "/", "").splitlines()


def with_lines(more: str) -> str:
    """The smallest configuration, a block of it replaced or one added."""
    key = more.split(":", 1)[0]
    kept = [line for line in SMALLEST.strip().splitlines() if not line.startswith(f"{key}:")]
    return "\n".join([*kept, more, ""])
