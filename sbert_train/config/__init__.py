"""The run's configuration: a YAML file, typed, strict and frozen."""

from sbert_train.config.loader import dump_config, load_config
from sbert_train.config.reference import reference_markdown
from sbert_train.config.schema import (
    CosineRegression,
    DataConfig,
    EngineConfig,
    EvalSet,
    HeadConfig,
    InBatchNegatives,
    MixingConfig,
    ModelConfig,
    RunConfig,
    TrainSet,
)

__all__ = [
    "CosineRegression",
    "DataConfig",
    "EngineConfig",
    "EvalSet",
    "HeadConfig",
    "InBatchNegatives",
    "MixingConfig",
    "ModelConfig",
    "RunConfig",
    "TrainSet",
    "dump_config",
    "load_config",
    "reference_markdown",
]
