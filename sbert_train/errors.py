"""The exceptions that a user can mend: printed as one line, exit code 2.

    SbertTrainError
    ├── CommandError       the options of a command
    ├── ConfigError        the YAML file or an override of it
    ├── DataError          a data set: where it is, how it reads, its columns and rows
    ├── ModelError         a model folder, package or Hub id
    ├── EncodingError      texts that could not be embedded or their vectors not be written
    ├── EvaluationError    an evaluation that has no meaningful figure
    ├── TrainingError      a training that led nowhere, or ran out of memory or disk
    └── ExportError        an export that failed or does not equal the model

Any other exception is our own fault and keeps its traceback (exit code 1), but for

    Interrupted            a signal told the run to stop (exit code 129, 130 or 143)
"""


class SbertTrainError(Exception):
    """Something that the user can mend; its message says what, where and what to do.

    It may quote what comes with data or a model, such as the name of a file, and is read on a terminal: so its text has
    no control characters but line breaks.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


def printable(text: str) -> str:
    r"""Text that cannot steer a terminal: what has no glyph is written as Python writes it, but for line breaks.

    >>> printable("pairs\x1b[2J.csv")
    'pairs\\x1b[2J.csv'
    """
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


class CommandError(SbertTrainError):
    """The options of a command do not fit together, or one has a value that it cannot take."""


class ConfigError(SbertTrainError):
    """The run's configuration is wrong."""


class DataError(SbertTrainError):
    """A data set cannot be read or does not hold what was asked of it."""


class ModelError(SbertTrainError):
    """A model cannot be found, verified or understood."""


class EncodingError(SbertTrainError):
    """Texts could not be embedded, or their vectors could not be written."""


class EvaluationError(SbertTrainError):
    """A metric is undefined on what it was given, such as constant predictions."""


class TrainingError(SbertTrainError):
    """Training diverged, or the machine has no room for it."""


class ExportError(SbertTrainError):
    """An exported model could not be written or does not equal the one it came from."""


class Interrupted(BaseException):
    """A signal told the run to stop. No Exception, so that nothing that mends those takes it for one.

    Attributes:
        signal: its number; 1 for SIGHUP, 2 for Ctrl-C, 15 for SIGTERM.
    """

    def __init__(self, signal: int, message: str) -> None:
        super().__init__(message)
        self.signal = signal
