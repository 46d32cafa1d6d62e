"""A set is loaded from every kind of source, once; what cannot be loaded is one line."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Features, List, Value

from sbert_train.data import sources
from sbert_train.data.locate import Builtin, Files, HubId, classify
from sbert_train.data.sieve import RowAccount, describe
from sbert_train.errors import DataError
from tests.data.conftest import Load

PAIRS = [
    {"anchor": "NA", "positive": "001", "score": 0},
    {"anchor": "null", "positive": "b, c", "score": 2.5},
    {"anchor": 'say "x"', "positive": "d", "score": 5},
]
MAPPED = {"anchor": ["NA", "null", 'say "x"'], "positive": ["001", "b, c", "d"], "score": [0.0, 0.5, 1.0]}


def write_pairs(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.Table.from_pylist(rows[1:]).schema), path)
    else:
        table = [list(rows[0]), *(list(row.values()) for row in rows)]
        separator = "\t" if path.suffix == ".tsv" else ","
        quoted = [['"' + str(value).replace('"', '""') + '"' for value in row] for row in table]
        path.write_text("\n".join(separator.join(row) for row in quoted))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_rows(load: Load, tmp_path: Path, suffix: str) -> None:
    loaded = load(write_pairs(tmp_path / f"pairs{suffix}", PAIRS), score_range=[0, 5])
    assert loaded.rows.to_dict() == MAPPED
    assert loaded.rows.features == Features(
        {"anchor": Value("string"), "positive": Value("string"), "score": Value("float64")}
    )
    assert loaded.account == RowAccount(read=3, kept=3, filtered=0, limited=0, dropped={})


def test_a_glob_reads_its_files_in_the_order_of_their_names(load: Load, tmp_path: Path) -> None:
    for name, rows in {"b": PAIRS[1:2], "a": PAIRS[:1], "c/d": PAIRS[2:]}.items():
        write_pairs(tmp_path / f"data/{name}.jsonl", rows)
    assert load("data/**/*.jsonl", score_range=[0, 5]).rows.to_dict() == MAPPED
    assert load(tmp_path / "data" / "[ab].jsonl").account.read == 2


def test_a_file_whose_name_holds_glob_characters_is_that_file(load: Load, tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs[1].jsonl", PAIRS)
    write_pairs(tmp_path / "pairs1.jsonl", PAIRS[:1])
    assert load("pairs[1].jsonl").account.read == 3


def test_a_tilde_is_the_home_folder(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_pairs(tmp_path / "home/pairs.jsonl", PAIRS)
    assert load("~/pairs.jsonl").account.read == 3


def test_negatives_become_lists_of_the_same_length(load: Load, tmp_path: Path) -> None:
    rows = [{"anchor": "a", "positive": "p", "hard": [f"{row}1", f"{row}2"]} for row in "xy"]
    for suffix in (".jsonl", ".parquet"):
        loaded = load(write_pairs(tmp_path / f"rows{suffix}", rows), columns={"negative": "hard"})
        assert loaded.rows["negative"][:] == [["x1", "x2"], ["y1", "y2"]]
        assert loaded.rows.features["negative"] == List(Value("string"))


@pytest.mark.parametrize("split", ["train", "dev", "validation", "test"])
def test_the_builtin_set_has_its_splits(load: Load, split: str) -> None:
    loaded = load("builtin:contrast", split=split)
    roles = {"anchor", "positive", "negative"} if split == "train" else {"sentence1", "sentence2", "score"}
    assert set(loaded.rows.column_names) == roles
    assert loaded.account.kept == loaded.account.read > 0


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("builtin:contrast", Builtin("contrast")),
        ("stanfordnlp/snli", HubId("stanfordnlp/snli")),
        ("org/name.v2", HubId("org/name.v2")),
        ("pairs.csv", Files("pairs.csv")),
        ("data/pairs.PARQUET", Files("data/pairs.PARQUET")),
        ("data/*", Files("data/*")),
        ("./data/pairs", Files("./data/pairs")),
        ("/data/pairs", Files("/data/pairs")),
        ("~/pairs", Files("~/pairs")),
        ("a/b/c", Files("a/b/c")),
        ("pairs", Files("pairs")),
        ("json", Files("json")),
        ("data/pairs.xlsx", Files("data/pairs.xlsx")),
        ("my data/pairs", Files("my data/pairs")),
        ("", Files("")),
    ],
)
def test_a_source_is_told_by_its_spelling(source: str, kind: Builtin | Files | HubId) -> None:
    assert classify(source) == kind


def test_named_classes_play_the_role_label_also_where_rows_are_chosen_by_them(
    load: Load, tmp_path: Path
) -> None:
    path = tmp_path / "nli.csv"
    path.write_text("sentence1,sentence2,label\na,b,neutral\nc,d,-\ne,f,entailment\n")
    names = ["entailment", "neutral", "contradiction"]
    assert "label" not in load(path, where={"label": names}).rows.column_names
    chosen = load(path, where={"label": names}, labels=names)
    assert chosen.rows["label"][:] == [1, 0] and chosen.account.filtered == 1


def test_a_second_load_does_not_read_again_and_a_changed_file_is_noticed(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pairs(tmp_path / "pairs.csv", PAIRS)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    options: dict[str, Any] = {"where": {"positive": ["001", "d"]}, "limit": 1}
    first = load(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(sources, "write_rows", lambda *_: pytest.fail("read again"))
        second = load(path, **options)
        moved = load(path.rename(tmp_path / "moved.csv"), **options)
    assert second.account == moved.account == first.account == RowAccount(3, 1, 1, 1, {})
    assert second.rows.to_dict() == first.rows.to_dict()
    assert second.rows._fingerprint == moved.rows._fingerprint == first.rows._fingerprint

    # The same size and the same time, as a hasty editor or a copying tool may leave them.
    path.write_text((tmp_path / "moved.csv").read_text().replace("null", "full"))
    os.utime(path, ns=times)
    changed = load(path)
    assert path.stat().st_size == (tmp_path / "moved.csv").stat().st_size
    assert changed.rows["anchor"][1] == "full"
    assert changed.rows._fingerprint != first.rows._fingerprint


@pytest.mark.parametrize("damage", ["rows.arrow", "account.json"])
def test_a_damaged_cache_entry_is_made_again(load: Load, tmp_path: Path, damage: str) -> None:
    path = write_pairs(tmp_path / "pairs.csv", PAIRS)
    before = load(path).rows.to_dict()
    (damaged,) = (tmp_path / "cache").rglob(damage)
    damaged.write_bytes(damaged.read_bytes()[:-60])
    assert load(path).rows.to_dict() == before


def test_rows_that_another_process_wrote_meanwhile_are_used(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pairs(tmp_path / "pairs.csv", PAIRS)
    write_rows = sources.write_rows

    def overtaken(*arguments: Any) -> RowAccount:
        with monkeypatch.context() as patch:
            patch.setattr(sources, "write_rows", write_rows)
            load(path)
        return write_rows(*arguments)

    monkeypatch.setattr(sources, "write_rows", overtaken)
    assert load(path).account.kept == 3
    assert [
        entry.name for entry in (tmp_path / "cache/sbert_train").iterdir() if "unfinished" in entry.name
    ] == []


def test_a_cache_that_cannot_be_written_is_refused(load: Load, tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", PAIRS)
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(
        DataError, match=r"the cache .*sbert_train cannot be written: .*set HF_DATASETS_CACHE"
    ):
        load(path)


def test_a_file_that_may_not_be_read_is_refused(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pairs(tmp_path / "pairs.csv", PAIRS)

    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(
        Path, "open", forbidden
    )  # the administrator, who may run the tests, may read every file
    with pytest.raises(DataError, match=r"pairs\.csv cannot be read: Permission denied"):
        load(path)


def test_a_failed_load_leaves_nothing_behind(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("anchor,score\na,1\nb,\n")
    with pytest.raises(DataError, match="line 3"):
        load(path)
    assert list((tmp_path / "cache/sbert_train").iterdir()) == []


FILES = {
    "pairs.csv": "anchor,positive,score,lang\na,b,1,en\nc,d,9,de\n",
    "other.csv": "anchor,score\nx,1\n",
    "header.csv": "anchor,positive\n",
    "header2.csv": "anchor,positive\n",
    "blank.csv": "anchor,positive\n ,b\n",
    "pairs.jsonl": '{"anchor": "a"}\n',
    "notes.txt": "",
}


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("pears.csv", {}, "no such file: pears.csv (did you mean 'pairs.csv'?)"),
        (
            "zzz.csv",
            {},
            "no such file: zzz.csv; data files in {folder}: 'blank.csv', 'header.csv', 'header2.csv', ",
        ),
        ("nowhere/at/all.csv", {}, "no such file: nowhere/at/all.csv (the folder nowhere does not exist)"),
        ("x*.csv", {}, "no file matches x*.csv; data files in {folder}: "),
        (
            "*.*",
            {},
            "notes.txt: format .txt is not read; expected one of '.csv', '.tsv', '.json', '.jsonl', '.parquet'",
        ),
        ("pairs.*", {}, "pairs.* matches files of several formats, '.csv', '.jsonl'; make it match only one"),
        ("./cache", {}, "cache is a folder; name its files, such as cache/*.csv"),
        ("pairs", {}, "no such file: pairs; a data set on the Hub is written organisation/name"),
        (
            "https://host/pairs.csv",
            {},
            "'https://host/pairs.csv' is an address; download it and give the path",
        ),
        (
            "pairs.csv",
            {"split": "test"},
            "split: a file is one split; leave `split` out, or set it to train, and name the file",
        ),
        ("pairs.csv", {"subset": "en"}, "subset: only Hub data sets have subsets, and pairs.csv is none"),
        (
            "builtin:contrasts",
            {},
            "no builtin data set 'contrasts' (did you mean 'contrast'?); there are 'contrast'",
        ),
        (
            "builtin:contrast",
            {"split": "valid"},
            "has no split 'valid' (did you mean 'validation'?); it has 'train'",
        ),
        ("builtin:contrast", {"subset": "x"}, "subset: only Hub data sets have subsets"),
        ("pairs.csv", {"limit": 0}, "limit: expected a number of rows from 1, found 0"),
        (
            "pairs.csv",
            {"score_range": [5, 0]},
            "score_range: expected [low, high] with low < high, found [5, 0]",
        ),
        ("pairs.csv", {"score_range": [0, 5]}, "pairs.csv, line 3: score '9' is outside score_range [0, 5]"),
        (
            "pairs.jsonl",
            {"score_range": [0, 5]},
            "pairs.jsonl: score_range: there is no column for the role score; map one or leave score_range out",
        ),
        (
            "pairs.jsonl",
            {"labels": ["no", "yes"]},
            "pairs.jsonl: labels: there is no column for the role label; map one or leave labels out",
        ),
        (
            "pairs.csv",
            {"where": {"language": "en"}},
            "where: there is no column 'language' (did you mean 'lang'?)",
        ),
        (
            "pairs.csv",
            {"where": {"lang": "EN"}},
            "no row is left: 2 rows read, 0 kept (2 filtered by where); where: lang must be 'EN' and was 'en', 'de'",
        ),
        (
            "pairs.csv",
            {"columns": {"anchr": "anchor"}},
            "columns: there is no role 'anchr' (did you mean 'anchor'?)",
        ),
        (
            "pairs.csv",
            {"columns": {"anchor": "text"}},
            "columns: anchor: there is no column 'text'; columns found: ",
        ),
        (
            "[op]*r*.csv",
            {},
            "pairs.csv: its columns are for the roles 'anchor', 'positive', 'score', those of other.csv for",
        ),
        ("header.csv", {}, "data set pairs: header.csv has columns, but not a single row"),
        ("header*.csv", {}, "data set pairs: header.csv and 1 more file have columns, but not a single row"),
        ("blank.csv", {}, "no row is left: 1 row read, 0 kept (1 dropped: empty anchor)"),
    ],
)
def test_what_cannot_be_loaded_is_one_line_that_names_the_set(
    load: Load, tmp_path: Path, source: str, options: dict[str, Any], words: str
) -> None:
    (tmp_path / "cache").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as raised:
        load(source, **options)
    message = str(raised.value)
    assert message.startswith("data set pairs: ")
    assert words.format(folder=tmp_path) in message
    assert "\n" not in message


def test_a_mistyped_key_of_a_json_line_shows_in_the_account(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"anchor": "a", "positive": "b"}\n{"anchor": "c", "postive": "d"}\n{"anchor": "e", "positive": "f"}\n'
    )
    account = load(path).account
    assert describe("rows", account) == "rows: 3 rows read, 2 kept (1 dropped: empty positive)"


@pytest.mark.parametrize("header", ["first; second", "a|b", "one\ttwo"])
def test_the_name_of_a_single_column_may_hold_what_separates_fields_elsewhere(
    load: Load, tmp_path: Path, header: str
) -> None:
    (tmp_path / "rows.csv").write_text(f"{header}\nthe cat\n")
    assert load("rows.csv", columns={"anchor": header}).rows.to_dict() == {"anchor": ["the cat"]}


@pytest.mark.realdata
@pytest.mark.skipif(
    "SBERT_TRAIN_DATA" not in os.environ, reason="SBERT_TRAIN_DATA does not name the real data sets"
)
def test_snli_and_stsb_load_with_every_row_accounted_for(load: Load) -> None:
    folder = Path(os.environ["SBERT_TRAIN_DATA"])
    columns = {"anchor": "premise", "positive": "hypothesis"}
    snli = load(folder / "snli-dev.jsonl", columns=columns, where={"label": 0})
    assert describe("snli", snli.account) == "snli: 9,842 rows read, 3,329 kept (6,513 filtered by where)"
    stsb = load(folder / "stsb-en-test.csv", score_range=[0, 5])
    assert stsb.account.kept == 1379
    assert 0 == min(stsb.rows["score"]) < max(stsb.rows["score"]) == 1
