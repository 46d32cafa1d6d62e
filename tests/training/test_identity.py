"""The digest by which the rows of a run are known again."""

from pathlib import Path

from sbert_train.data.sources import load_set
from sbert_train.training.identity import digest_of_rows
from tests.training.runs import write_triplets


def test_rows_of_the_same_content_have_the_same_digest(tmp_path: Path) -> None:
    table = load_set("a", str(write_triplets(tmp_path)), cache_dir=tmp_path / "c").rows
    reordered = table.select(range(len(table)))
    assert digest_of_rows(table) == digest_of_rows(reordered)
    other_order = table.select(range(len(table) - 1, -1, -1))
    assert digest_of_rows(table) != digest_of_rows(other_order)
    assert digest_of_rows(table) != digest_of_rows(table.rename_column("negative", "sentence2"))
    assert digest_of_rows(table.select(range(10, 30))) == digest_of_rows(
        table.select(range(30)).select(range(10, 30))
    )
