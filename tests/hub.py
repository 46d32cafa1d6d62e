"""A fixture that serves a Hub on loopback and runs client code in a process of its own.

The clients read HF_ENDPOINT and HF_HOME when they are imported, so what they do must be tested in a fresh process.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from tests.hub_server import serve

REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class LoopbackHub:
    """A running Hub.

    Attributes:
        root: `models/ORG/NAME/…` and `datasets/ORG/NAME/…` below it are what the Hub has; fill it at any time.
        home: the HF_HOME of the clients, with their caches.
        url: where the Hub answers.
        requests: `METHOD PATH` of every request so far.
    """

    root: Path
    home: Path
    url: str
    requests: list[str]

    def run(self, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python code as a client of this Hub, its working directory the folder above `root`."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        told = {"HF_ENDPOINT": self.url, "HF_HOME": str(self.home), "PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(
            [sys.executable, "-c", dedent(code), *arguments],
            env={**ours, **told, **environment},
            cwd=self.root.parent,
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    """An empty Hub on loopback."""
    root, home = tmp_path / "hub", tmp_path / "home"
    for folder in (root / "models", root / "datasets", home):
        folder.mkdir(parents=True)
    with serve(root) as (url, requests):
        yield LoopbackHub(root, home, url, requests)
