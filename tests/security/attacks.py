"""Malicious files: each holds a payload that leaves a marker on the disk if it runs."""

import contextlib
import io
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Marker:
    """The file that a payload leaves."""

    path: Path

    @property
    def left(self) -> bool:
        return self.path.exists()

    @property
    def code(self) -> str:
        """Python source that leaves it."""
        return f"open({str(self.path)!r}, 'w').close()\n"

    def require_works(self, open_carelessly: Callable[[], object]) -> None:
        """The premise of a test: opened in the careless way, the payload runs; whatever else that comes to."""
        assert not self.left
        with contextlib.suppress(Exception):
            open_carelessly()
        assert self.left, "the payload does not work, so that the test could not fail"
        self.path.unlink()

    def pickled(self) -> bytes:
        """A pickle that leaves it when it is loaded."""
        return pickle.dumps(_Payload(self.code))

    def saved_by_torch(self) -> bytes:
        """The same in the form of torch.save."""
        buffer = io.BytesIO()
        torch.save({"linear.weight": _Payload(self.code)}, buffer)
        return buffer.getvalue()


class _Payload:
    """What unpickling turns into a call of exec."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return exec, (self._code,)


def edit(file: Path, **changes: object) -> None:
    """Change keys of a JSON file, which begins if it is not there."""
    content: Mapping[str, object] = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**content, **changes}))


ARCHITECTURE = """
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

class TheirConfig(BertConfig):
    model_type = "theirs"

class TheirModel(BertModel):
    config_class = TheirConfig

class TheirTokenizer(PreTrainedTokenizerFast):
    pass
"""


def bring_code(model: Path, marker: Marker) -> None:
    """Make a model one of an architecture that transformers does not have, with the code for it."""
    (model / "theirs.py").write_text(marker.code + ARCHITECTURE)
    code = {"AutoConfig": "theirs.TheirConfig", "AutoModel": "theirs.TheirModel"}
    edit(model / "config.json", model_type="theirs", auto_map=code)
