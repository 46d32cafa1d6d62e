"""Fine-tune sentence-embedding bi-encoders from one YAML file.

The Python API is small: `SentenceEncoder.load(path).encode(texts)`.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["SentenceEncoder", "__version__"]

if TYPE_CHECKING:
    from sbert_train.model.encoder import SentenceEncoder


def __getattr__(name: str) -> Any:
    # Imported when asked for, so that the command line answers --help without loading torch.
    if name == "SentenceEncoder":
        from sbert_train.model.encoder import SentenceEncoder

        return SentenceEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
