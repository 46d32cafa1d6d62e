"""The run's configuration: a YAML file, typed, strict and frozen."""

from sbert_train.config.loader import WrongValues, dump_config, load_config
from sbert_train.config.objectives import Objective
from sbert_train.config.reference import reference_markdown
from sbert_train.config.schema import (
    DataConfig,
    EngineConfig,
    EvalSet,
    HeadConfig,
    MixingConfig,
    ModelConfig,
    RunConfig,
    TrainSet,
)

__all__ = [
    "DataConfig",
    "EngineConfig",
    "EvalSet",
    "HeadConfig",
    "MixingConfig",
    "ModelConfig",
    "Objective",
    "RunConfig",
    "TrainSet",
    "WrongValues",
    "dump_config",
    "load_config",
    "reference_markdown",
]
