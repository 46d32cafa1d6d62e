"""The corpus of wrong inputs: data, configurations, models and options, each with what must be said."""

from tests.wrong_configs import WRONG_COMMANDS, WRONG_CONFIGS, WRONG_MODELS
from tests.wrong_data import WRONG_DATA
from tests.wrong_files import WRONG_FILES

WRONG_INPUTS = [*WRONG_FILES, *WRONG_DATA, *WRONG_CONFIGS, *WRONG_MODELS, *WRONG_COMMANDS]
