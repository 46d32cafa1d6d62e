"""A data set is rows and never a program: no script of it is run, nothing in it is unpickled."""

import json
import pickle
import runpy
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from sbert_train.data.sources import load_set
from sbert_train.errors import DataError
from tests.hub import LoopbackHub
from tests.security.attacks import Marker
from tests.security.conftest import Refusal

ROWS = {"anchor": ["a", "c"], "positive": ["b", "d"]}


def refusal(source: str, folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_set("it", source, cache_dir=folder / "cache")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def with_a_pickle(marker: Marker) -> pa.Table:
    """Rows, a column of which is of a type that older pyarrow unpickles (CVE-2023-47248)."""
    said = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": marker.pickled()}
    fields = [pa.field("anchor", pa.string(), metadata=said), pa.field("positive", pa.string())]
    return pa.table(ROWS, schema=pa.schema(fields, metadata={"pandas": marker.pickled()}))


def test_a_loading_script_in_a_folder_of_that_name_is_not_run(
    tmp_path: Path, marker: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "org" / "name").mkdir(parents=True)
    script = tmp_path / "org" / "name" / "name.py"
    script.write_text(marker.code)
    marker.require_works(lambda: runpy.run_path(str(script)))
    monkeypatch.chdir(tmp_path)
    assert "org/name is a path here" in refusal("org/name", tmp_path)
    assert "is a folder; name its files" in refusal("./org/name", tmp_path)
    assert "format .py is not read" in refusal("org/name/name.py", tmp_path)


@pytest.mark.parametrize(
    "name", ["rows.pkl", "rows.pickle", "rows.arrow", "rows.npy", "rows.pt", "rows.parquet"]
)
def test_a_pickle_is_no_data_file(tmp_path: Path, marker: Marker, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(marker.pickled())
    marker.require_works(lambda: pickle.loads(file.read_bytes()))
    told = refusal(str(file), tmp_path)
    assert "is not read" in told or "is not a Parquet file" in told


def test_what_is_pickled_in_the_schema_of_a_parquet_file_stays_so(tmp_path: Path, marker: Marker) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(with_a_pickle(marker), file)
    stored = pq.read_schema(file).field("anchor")
    assert stored.metadata[b"ARROW:extension:metadata"] == marker.pickled()
    marker.require_works(lambda: pickle.loads(stored.metadata[b"ARROW:extension:metadata"]))
    assert load_set("it", str(file), cache_dir=tmp_path / "cache").rows.to_dict() == ROWS


@pytest.mark.parametrize(
    "said",
    [
        b"{",
        b"[" * 100_000,
        b"3",
        json.dumps({"info": {"features": {"anchor": {"_type": "os.system", "command": "touch x"}}}}).encode(),
        json.dumps(
            {"info": {"features": {"anchor": {"_type": "ClassLabel", "names_file": "/etc/passwd"}}}}
        ).encode(),
        json.dumps({"info": {"features": []}}).encode(),
    ],
)
def test_what_a_parquet_file_says_of_its_columns_is_not_believed(tmp_path: Path, said: bytes) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table(ROWS).replace_schema_metadata({"huggingface": said}), file)
    assert "says of its columns" in refusal(str(file), tmp_path)


def test_deep_json_is_one_line(tmp_path: Path, refused: Refusal, tiny_model: Path) -> None:
    for name, text in {"a.json": "[" * 200_000, "b.jsonl": '{"anchor":' * 200_000}.items():
        (tmp_path / name).write_text(text)
        assert "broken JSON" in refused("eval", tiny_model, "--data", tmp_path / name)


LOAD = """
import json
import sys

from sbert_train.data.sources import load_set
from sbert_train.errors import DataError

for source in sys.argv[1:]:
    try:
        print(json.dumps(load_set("it", source).rows.to_dict()))
    except DataError as problem:
        print("refused:", problem)
"""


def test_nothing_of_a_data_set_of_the_hub_is_run(hub: LoopbackHub, marker: Marker) -> None:
    root = hub.root / "datasets" / "org"
    for name in ("script", "pickled", "table", "card"):
        (root / name).mkdir(parents=True)
    (root / "script" / "script.py").write_text(marker.code)
    (root / "script" / "train.jsonl").write_text('{"anchor": "a", "positive": "b"}\n')
    (root / "pickled" / "train.pkl").write_bytes(marker.pickled())
    for name in ("table", "card"):
        pq.write_table(with_a_pickle(marker), root / name / "train.parquet")
    card = f"!!python/object/apply:exec [{json.dumps(marker.code)}]"
    (root / "card" / "README.md").write_text(f"---\nconfigs: {card}\n---\n")
    marker.require_works(lambda: yaml.unsafe_load(card))
    marker.require_works(lambda: runpy.run_path(str(root / "script" / "script.py")))
    marker.require_works(lambda: pickle.loads((root / "pickled" / "train.pkl").read_bytes()))

    done = hub.run(LOAD, "org/script", "org/pickled", "org/table", "org/card")
    assert done.returncode == 0, done.stderr
    script, pickled, table, card = done.stdout.splitlines()
    assert "refused: " in script and "Dataset scripts are no longer supported" in script
    assert "refused: " in pickled and "refused: " in card
    assert json.loads(table) == ROWS
