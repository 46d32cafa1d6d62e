"""Hub data sets, through a Hub on loopback: what is loaded, and what is said when it cannot be."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from sbert_train.data.sources import load_set
from sbert_train.errors import DataError
from tests.hub import LoopbackHub

CARD = """\
---
configs:
- config_name: pair
  data_files:
  - {split: train, path: "pair/train-*"}
  - {split: validation, path: "pair/validation-*"}
- config_name: triplet
  data_files:
  - {split: train, path: "triplet/train-*"}
dataset_info:
- config_name: pair
  features:
  - {name: premise, dtype: string}
  - {name: hypothesis, dtype: string}
  - name: label
    dtype:
      class_label:
        names: {"0": entailment, "1": neutral}
- config_name: triplet
  features:
  - {name: anchor, dtype: string}
  - {name: positive, dtype: string}
  - {name: negative, dtype: string}
---
"""

PROGRESS_BAR = re.compile(r"\d+%\||\d+ examples \[")

LOAD_ALL = """
import json
import sys

from sbert_train.data.sources import load_set
from sbert_train.errors import DataError

results = []
for case in json.loads(sys.argv[1]):
    try:
        loaded = load_set("nli", **case)
        results.append({"rows": loaded.rows.to_dict(), "account": vars(loaded.account)})
    except DataError as problem:
        results.append({"error": str(problem)})
print(json.dumps(results))
"""


def load_in_client(hub: LoopbackHub, cases: list[dict[str, Any]], **environment: str) -> list[dict[str, Any]]:
    done = hub.run(LOAD_ALL, json.dumps(cases), **environment)
    assert done.returncode == 0, done.stderr
    told = [line for line in re.split(r"[\r\n]+", done.stderr) if line and not PROGRESS_BAR.search(line)]
    assert told == [], "the user sees progress bars and nothing else"
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


@pytest.fixture
def nli(hub: LoopbackHub) -> LoopbackHub:
    """`org/nli` with the subsets pair (train, validation) and triplet (train)."""
    folder = hub.root / "datasets/org/nli"
    pair: dict[str, list[Any]] = {
        "premise": ["p0", "p1", "p2"],
        "hypothesis": ["h0", "h1", "h2"],
        "label": [0, 1, -1],
    }
    write_parquet(folder / "pair/train-00000-of-00001.parquet", pair)
    write_parquet(
        folder / "pair/validation-00000-of-00001.parquet", {key: values[:1] for key, values in pair.items()}
    )
    write_parquet(
        folder / "triplet/train-00000-of-00001.parquet",
        {"anchor": ["a"], "positive": ["b"], "negative": ["c"]},
    )
    (folder / "README.md").write_text(CARD)
    return hub


def write_parquet(path: Path, columns: dict[str, list[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


PAIR: dict[str, Any] = {
    "source": "org/nli",
    "subset": "pair",
    "columns": {"anchor": "premise", "positive": "hypothesis"},
}


SCRIPT = """
from pathlib import Path
Path("the-script-was-run").touch()
"""


def test_hub_sets_load_by_subset_and_split_or_fail_with_what_there_is_and_are_cached(
    nli: LoopbackHub,
) -> None:
    (nli.root.parent / "org/here").mkdir(parents=True)
    (nli.root / "datasets/org/script").mkdir()
    (nli.root / "datasets/org/script/script.py").write_text(SCRIPT)
    (nli.root / "datasets/org/broken").mkdir()
    (nli.root / "datasets/org/broken/train.parquet").write_text("no Parquet")
    cases = [
        PAIR,
        {**PAIR, "split": "validation"},
        {**PAIR, "split": "train[1:]"},
        {**PAIR, "where": {"label": "neutral"}},
        {"source": "org/nli", "subset": "triplet"},
        {**PAIR, "split": "test"},
        {**PAIR, "split": "validatoin"},
        {**PAIR, "subset": "pairs"},
        {**PAIR, "subset": None},
        {**PAIR, "split": "train[:x]"},
        {**PAIR, "source": "org/nil"},
        {**PAIR, "columns": {"anchor": "sentence"}},
        {"source": "org/here"},
        {"source": "org/script"},
        {"source": "org/broken"},
    ]
    train, validation, sliced, by_name, triplet, *failures = load_in_client(nli, cases)

    assert train["rows"] == {"anchor": ["p0", "p1"], "positive": ["h0", "h1"], "label": [0, 1]}
    assert train["account"] == {
        "read": 3,
        "kept": 2,
        "filtered": 0,
        "limited": 0,
        "dropped": {"unlabelled": 1},
        "kept_with": {},
        "columns": {"anchor": ["premise"], "positive": ["hypothesis"], "label": ["label"]},
    }
    assert validation["rows"]["anchor"] == ["p0"]
    assert sliced["rows"]["anchor"] == ["p1"]
    assert by_name["rows"] == {"anchor": ["p1"], "positive": ["h1"]}
    assert triplet["rows"] == {"anchor": ["a"], "positive": ["b"], "negative": [["c"]]}

    expected = [
        "has no split 'test'; it has 'train', 'validation'",
        "has no split 'validatoin' (did you mean 'validation'?)",
        "has no subset 'pairs' (did you mean 'pair'?); it has 'pair', 'triplet'",
        "has several subsets; set `subset` to one of 'pair', 'triplet'",
        "(subset pair, split train[:x]) cannot be loaded: Unrecognized instruction format",
        "has no data set 'org/nil'; check the name",
        "columns: anchor: there is no column 'sentence'; columns found: 'premise', 'hypothesis', 'label'",
        "org/here is a path here; name files with their suffix, such as org/here/*.csv",
        "cannot be loaded: Dataset scripts are no longer supported, but found script.py",
        "'org/broken' (subset None, split train) cannot be loaded: Parquet magic bytes not found",
    ]
    messages = [failure["error"] for failure in failures]
    assert len(messages) == len(expected)
    for message, words in zip(messages, expected, strict=True):
        assert words in message
        assert message.startswith("data set nli: ")
        assert "\n" not in message

    assert not (nli.root.parent / "the-script-was-run").exists()

    offline = load_in_client(nli, [PAIR, {**PAIR, "source": "org/other"}], HF_HUB_OFFLINE="1")
    assert offline[0] == train
    assert "switched off (HF_HUB_OFFLINE) and 'org/other' is not in the cache" in offline[1]["error"]


def test_a_hub_out_of_reach_is_said_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        constants, "ENDPOINT", "http://127.0.0.1:9"
    )  # the discard port: nothing listens there
    started = time.monotonic()
    with pytest.raises(
        DataError, match=r"cannot reach the Hub at http://127\.0\.0\.1:9 for the data set 'org/nli'"
    ):
        load_set("nli", "org/nli", cache_dir=tmp_path)
    assert time.monotonic() - started < 10


def test_the_loopback_hub_serves_models_and_says_what_is_missing(hub: LoopbackHub) -> None:
    folder = hub.root / "models/org/model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text('{"hidden_size": 8}')
    (folder / "1_Pooling/config.json").write_text("{}")
    done = hub.run("""
        from pathlib import Path
        from huggingface_hub import HfApi, hf_hub_download, snapshot_download
        from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

        folder = Path(snapshot_download("org/model"))
        print(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.json")))
        print(Path(hf_hub_download("org/model", "config.json")).read_text())
        for repo, name in [("org/model", "none.json"), ("org/none", "config.json")]:
            try:
                hf_hub_download(repo, name)
            except (EntryNotFoundError, RepositoryNotFoundError) as problem:
                print(type(problem).__name__)
    """)
    assert done.stdout.splitlines() == [
        "['1_Pooling/config.json', 'config.json']",
        '{"hidden_size": 8}',
        "RemoteEntryNotFoundError",
        "RepositoryNotFoundError",
    ], done.stderr
    assert any(request.startswith("GET /org/model/resolve/") for request in hub.requests)
