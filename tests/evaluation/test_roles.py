"""A fingerprint tells sets apart, also where their texts only stand in other columns."""

from sbert_train.evaluation.roles import fingerprint


def test_equal_values_have_one_fingerprint() -> None:
    assert fingerprint(["a", "b"], [1.0]) == fingerprint(("a", "b"), [1.0])


def test_order_boundaries_and_types_count() -> None:
    variants = [
        fingerprint(["a", "b"], ["c"]),
        fingerprint(["a"], ["b", "c"]),
        fingerprint(["b", "a"], ["c"]),
        fingerprint(["ab"], ["c"]),
        fingerprint(["a", "b"], ["1"]),
        fingerprint(["a", "b"], [1]),
    ]
    assert len(set(variants)) == len(variants)
