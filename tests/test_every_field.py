"""Every field of the configuration changes something: none is accepted and then ignored."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sbert_train.config import RunConfig
from sbert_train.errors import SbertTrainError
from sbert_train.training.fit import fit
from tests.config_leaves import leaves
from tests.second_values import SECOND, Second, write_files
from tests.tiny import make_encoder
from tests.training.objective_runs import block_for
from tests.training.runs import losses

ONLY_OFF = {"data.streaming"}
"""Fields of features that come later, which refuse every other value; see `Only`."""

Tree = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data and models of all runs."""
    root = tmp_path_factory.mktemp("every_field")
    make_encoder().save(root / "tiny")
    (root / "files").mkdir()
    write_files(root / "files")
    return root / "files"


def test_the_table_has_every_field_and_no_other() -> None:
    every = set(leaves())
    assert len(every) > 100
    assert set(SECOND) == every - ONLY_OFF
    for leaf in ONLY_OFF:
        field = RunConfig.model_fields[leaf.split(".")[0]].annotation.model_fields[leaf.split(".")[1]]  # type: ignore[union-attr]
        assert [type(one).__name__ for one in field.metadata] == ["Only"]


def put(tree: Tree, path: str, value: Any) -> None:
    """Set what stands at a dotted path; `data.train` and `data.eval` mean their first set."""
    *parents, last = path.split(".")
    for name in parents:
        child = tree.setdefault(name, {}) or tree.update({name: {}}) or tree[name]
        tree = child[0] if isinstance(child, list) else child
    tree[last] = value


def base_of(leaf: str, second: Second, folder: Path) -> Tree:
    """The run whose field is changed."""
    tiny = folder.parent / "tiny"
    objective = leaf.split(".")[1] if leaf.startswith("objective.") else "in_batch_negatives"
    scored = {"name": "pairs", "task": "sts", "source": "{folder}/scored100.csv", "score_range": [0, 5]}
    tree: Tree = {"output_dir": "run", "model": {"base": str(tiny)}, "engine": {"precision": "fp32"}}
    tree |= block_for(objective, folder, tiny)
    tree["train"] = {
        "learning_rate": 1e-3,
        "per_device_train_batch_size": 8,
        "max_steps": 3,
        "logging_steps": 1,
    }
    if leaf.startswith("data.eval.") or leaf == "model.normalize":
        tree["data"]["eval"] = [scored]
    for path, value in json.loads(json.dumps(dict(second.around))).items():
        put(tree, path, value)
    return tree


def changed_of(leaf: str, second: Second, base: Tree) -> Tree:
    """The same run with the second value."""
    tree: Tree = json.loads(json.dumps(base))
    if leaf.startswith("objective."):
        name = leaf.split(".")[2]
        if name == "name":
            tree["objective"] = {"name": second.value}
        else:
            tree["objective"][name] = second.value
    else:
        put(tree, leaf, second.value)
    return tree


def outcome(tree: Tree, folder: Path, where: Path) -> dict[str, Any]:
    """What a run ends in; `refused` where it does not begin."""
    lines: list[str] = []
    text = json.dumps({**tree, "output_dir": str(where / tree["output_dir"])}).replace(
        "{folder}", str(folder)
    )
    try:
        result = fit(RunConfig.model_validate_json(text), say=lines.append)
    except SbertTrainError as error:
        return {"refused": str(error)}
    report = json.loads(result.folder.report.read_text())
    files = [
        path for path in sorted(result.folder.model.rglob("*")) if path.is_file() and path.name != "README.md"
    ]
    return {
        "losses": losses(result),
        "model": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "metrics": report["evaluation"],
        "data": report["data"],
        "plan": [line for line in lines if not line.startswith(("model ", "trained "))],
        "folder": result.folder.root.name,
    }


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
)  # of compiling
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("leaf", SECOND)
def test_a_field_changes_something(leaf: str, folder: Path, tmp_path: Path) -> None:
    second = SECOND[leaf]
    base = base_of(leaf, second, folder)
    changed = changed_of(leaf, second, base)
    assert base != changed
    first, other = (outcome(tree, folder, tmp_path / name) for tree, name in ((base, "a"), (changed, "b")))
    refused = [name for name, one in (("base", first), ("changed", other)) if "refused" in one]
    assert refused == ([] if second.refused is None else [second.refused]), (first, other)
    for one in (first, other):
        assert leaf.split(".")[-1] in one.get("refused", leaf), "the message names the field"
    if second.refused is None:
        assert first[second.seen] != other[second.seen]


@pytest.mark.slow
@pytest.mark.parametrize("leaf", ["seed", "data.eval.limit", "objective.softmax.concat"])
def test_the_same_run_has_the_same_outcome(leaf: str, folder: Path, tmp_path: Path) -> None:
    """The premise of all others."""
    base = base_of(leaf, SECOND[leaf], folder)
    first, again = (outcome(base, folder, tmp_path / name) for name in "ab")
    assert first == again
