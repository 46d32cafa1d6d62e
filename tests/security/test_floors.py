"""No version with a known hole can be installed beside this package, and none is what CI runs."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]

FLOORS = {
    "torch": "2.10",  # CVE-2026-24747, and CVE-2025-32434 before 2.6: weights_only=True ran code
    "transformers": "5.3",  # CVE-2026-4372, CVE-2026-1839
    "sentence-transformers": "6.0",
    "datasets": "4.0",  # before it, loading scripts ran
    "pyarrow": "14.0.1",  # CVE-2023-47248: a Parquet file was unpickled
    "pyyaml": "5.4",  # CVE-2020-14343
    "pydantic": "2.4",  # CVE-2024-3772
    "scikit-learn": "1.5",  # CVE-2024-5206
    "tqdm": "4.66.3",  # CVE-2024-34062
    "onnx": "1.19",  # CVE-2025-51480
}
"""Package -> the first version without the holes that are known of it; those of torch, transformers and
sentence-transformers stand in the project's facts, the others in the advisories named."""


def declared() -> Iterator[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for lines in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(Requirement, lines)


@pytest.mark.parametrize("name", FLOORS)
def test_what_is_asked_for_is_not_below_the_floor(name: str) -> None:
    found = [one for one in declared() if one.name.lower() == name]
    assert found
    for one in found:
        lowest = [Version(part.version) for part in one.specifier if part.operator in (">=", "==", "~=")]
        assert lowest and max(lowest) >= Version(FLOORS[name]), one


@pytest.mark.parametrize("name", FLOORS)
def test_what_ci_runs_is_not_below_the_floor(name: str) -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.lower().replace("_", "-").split("==") for line in lines if not line.startswith("#"))
    assert Version(pins[name]) >= Version(FLOORS[name])
