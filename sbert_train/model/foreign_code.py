"""What a model folder asks transformers to run, or to read from elsewhere: refused unless it is trusted.

A folder has three ways to ask, all in its config.json:

    auto_map               Python files beside it, or in another repository (`org/name--file.Class`)
    attn_implementation    a kernel from the Hub, by its name or as what stands in for flash attention
    transformers_weights   weights of another name, or an index of them, which nobody has checked

transformers itself refuses the first. It follows the second where the package `kernels` is installed, and the third.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sbert_train.errors import ModelError
from sbert_train.model.read_files import read_object, wrong

_ATTENTION_OF_TORCH = (None, "eager", "sdpa")
_WEIGHTS = (None, "model.safetensors", "model.safetensors.index.json")


def refuse_foreign_code(backbone: Path) -> None:
    """Check that a backbone's config.json makes transformers run, fetch or read nothing of its own accord.

    Raises:
        ModelError: it asks for it; the message names the key.
    """
    file = backbone / "config.json"
    for path, value in _settings(read_object(file)):
        key = path.rpartition(".")[2]
        # Lists and objects, too: transformers takes an implementation for each part of a model.
        if key in ("attn_implementation", "_attn_implementation") and value not in _ATTENTION_OF_TORCH:
            raise wrong(
                file, path, "no such key, as what it names may be fetched from the Hub and run", value
            )
        if key == "transformers_weights" and value not in _WEIGHTS:
            raise wrong(file, path, "no such key, as no weights of another name are read", value)


def untrusted(backbone: Path) -> ModelError:
    """The error that a model cannot be loaded without the Python code that it brings."""
    return ModelError(
        f"{backbone}: this model needs Python code that it brings, which is not run ({_named_code(backbone)}): take a "
        "model of an architecture that transformers has; or read that code and, if you trust it, fine-tune the model "
        "with model.trust_remote_code=true"
    )


def _named_code(backbone: Path) -> str:
    """The classes that a folder names as its own."""
    found: dict[str, Any] = {}
    for name in ("config.json", "tokenizer_config.json"):
        named = read_object(backbone / name, optional=True).get("auto_map")
        found |= named if isinstance(named, Mapping) else {}
    return ", ".join(str(one) for one in found.values())[:200] or "auto_map"


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every key of a configuration and of the configurations in it, by its dotted path."""
    waiting = [("", config)]
    while waiting:
        before, block = waiting.pop()
        for key, value in block.items():
            yield f"{before}{key}", value
            if isinstance(value, Mapping):
                waiting.append((f"{before}{key}.", value))
