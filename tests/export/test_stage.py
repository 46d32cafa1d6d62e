"""An export is there whole or not at all, and replaces nothing but an export."""

import json
from pathlib import Path

import pytest

from sbert_train.errors import ExportError
from sbert_train.export.stage import MANIFEST, staged, write_manifest


def write(output: Path, *names: str) -> None:
    with staged(output) as stage:
        for name in names:
            (stage / name).parent.mkdir(exist_ok=True)
            (stage / name).write_text(name)
        write_manifest(stage, {"to": "test"})


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_new_folder_and_its_parents_are_made(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b", "config.json", "onnx/model.onnx")
    assert names(tmp_path / "a") == [
        "b",
        *(f"b/{n}" for n in ("config.json", MANIFEST, "onnx", "onnx/model.onnx")),
    ]
    manifest = json.loads((tmp_path / "a" / "b" / MANIFEST).read_text())
    assert manifest == {"to": "test", "files": ["config.json", MANIFEST, "onnx/model.onnx"]}


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", "config.json")
    assert names(tmp_path) == ["out", "out/config.json", f"out/{MANIFEST}"]


def test_an_export_replaces_an_export(tmp_path: Path) -> None:
    write(tmp_path / "out", "old.json")
    write(tmp_path / "out", "new.json")
    assert names(tmp_path) == ["out", f"out/{MANIFEST}", "out/new.json"]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "out", "old.json")
    with pytest.raises(ZeroDivisionError), staged(tmp_path / "out") as stage:
        (stage / "new.json").write_text("")
        assert stage.is_dir()
        raise ZeroDivisionError
    assert names(tmp_path) == ["out", f"out/{MANIFEST}", "out/old.json"]


@pytest.mark.parametrize("name", ["notes.txt", "onnx/extra.onnx"])
def test_what_no_export_wrote_is_not_replaced(tmp_path: Path, name: str) -> None:
    write(tmp_path / "out", "config.json", "onnx/model.onnx")
    (tmp_path / "out" / name).write_text("mine")
    with pytest.raises(
        ExportError, match=f"{name} in it was not written by an export; choose another --output"
    ):
        write(tmp_path / "out", "config.json")
    assert (tmp_path / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("manifest", [None, "{", "[]", '{"files": 3}'])
def test_a_folder_without_a_readable_list_is_not_replaced(tmp_path: Path, manifest: str | None) -> None:
    (tmp_path / "config.json").write_text("{}")
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(ExportError, match="not written by an export"):
        write(tmp_path, "config.json")


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ExportError, match="out is a file; --output names a folder"):
        write(tmp_path / "out")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"cannot be written: .*; choose another --output"):
        write(tmp_path / "file" / "out")


def test_a_link_stays_and_its_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "config.json")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == ["config.json", MANIFEST]
