"""Whatever lies in a file and whatever is asked of it: rows that are as they must be, or lines that say why not."""

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from sbert_train.data.policy import CHOICES
from sbert_train.data.roles import ROLES, TEXT_ROLES
from sbert_train.data.sources import LoadedSet, load_set
from sbert_train.errors import DataError

NAMES = st.sampled_from(
    [*ROLES, "negative_1", "negative_2", "negative_x", "text", "part", "", "a\nb", "\x1b[31m"]
)
texts = st.text(max_size=6) | st.sampled_from(
    ["the cat", "", " ", "NA", "null", "1", "-1", "true", "nan", "1e400"]
)
scalars = (
    texts
    | st.none()
    | st.booleans()
    | st.integers(-3, 6)
    | st.sampled_from([2**63, -(2**80), 10**400])
    | st.floats()
)
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(texts, scalars, max_size=2)
good = {role: st.sampled_from(["the cat", "a dog", "b"]) for role in TEXT_ROLES}
good |= {"score": st.sampled_from([0, 1, 2.5, 5]), "label": st.sampled_from([0, 1])}
SHAPES = [
    ["anchor", "positive"],
    ["anchor", "positive", "negative_1", "negative_2", "text"],
    ["sentence1", "sentence2", "score"],
    ["label", "part", "sentence1", "sentence2"],
]


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows with columns of roles and others, most of them good, some values wrong."""
    is_wild = draw(st.booleans())
    if is_wild:
        columns = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
        count = draw(st.integers(0, 5))
    else:
        columns = draw(st.sampled_from(SHAPES))
        count = draw(st.integers(1, 5))
    wrong = values if is_wild else st.nothing()
    return [{name: draw(good.get(name, scalars) | wrong) for name in columns} for _ in range(count)]


policies = st.fixed_dictionaries(
    {}, optional={kind: st.sampled_from(few) for kind, few in CHOICES.items() if kind != "mixed_labels"}
)
options = st.fixed_dictionaries({}, optional={"policy": policies}) | st.fixed_dictionaries(
    {},
    optional={
        "columns": st.dictionaries(
            st.sampled_from([*ROLES, "rolle"]), NAMES | st.none() | st.lists(NAMES, max_size=2), max_size=2
        ),
        "where": st.dictionaries(NAMES, scalars | st.lists(scalars, max_size=2), max_size=1),
        "score_range": st.sampled_from([(0, 5), (-1, 1), (5, 0)]),
        "limit": st.integers(0, 3),
        "labels": st.sampled_from([("no", "yes"), ("0", "1")]),
        "policy": policies,
    },
)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        try:
            pq.write_table(pa.Table.from_pylist(rows), path)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            assume(False)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as out:
            writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerows([list(rows[0]) if rows else [], *(list(row.values()) for row in rows)])
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def require_right(one: LoadedSet) -> None:
    """The promises of LoadedSet."""
    account, rows = one.account, one.rows.to_dict()
    assert account.read == account.kept + account.filtered + account.limited + sum(account.dropped.values())
    assert len(one.rows) == account.kept > 0
    assert set(rows) <= set(ROLES) and rows
    for role in TEXT_ROLES:
        texts = rows.get(role, [])
        lists = [text if role == "negative" else [text] for text in texts]
        assert all(isinstance(text, str) for several in lists for text in several)
        assert len({len(several) for several in lists}) <= 1, "the same number for every row"
    assert all(isinstance(label, int) for label in rows.get("label", []))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_a_file_gives_a_set_as_it_must_be_or_lines_that_name_it(suffix: str) -> None:
    outcomes = {"set": 0, "refused": 0}

    @settings(max_examples=120, deadline=None)
    @given(rows=tables(), asked=options)
    def check(rows: list[dict[str, Any]], asked: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / f"rows{suffix}"
            write(path, rows)
            try:
                loaded = load_set("rows", str(path), **asked, cache_dir=Path(name) / "cache")
            except DataError as problem:
                event("refused")
                outcomes["refused"] += 1
                for line in str(problem).split("\n"):
                    assert line.startswith("data set rows: "), line
                    assert line.isprintable(), line
                return
            outcomes["set"] += 1
            require_right(loaded)
            del loaded

    check()
    assert min(outcomes.values()) >= 3, outcomes
