"""Whatever a configuration holds: it is read, or every line of the error names the file and says what is wrong."""

import copy
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sbert_train.config import dump_config, load_config
from sbert_train.config.reader import parse_yaml
from sbert_train.errors import ConfigError
from tests.configs import EVERY_KEY

TREE = parse_yaml(EVERY_KEY.replace("&", "and"))

words = st.sampled_from(
    ["auto", "none", "triplet", "a\nb", "\x1b[31m", "${HOME}", "${NOT_THERE}", "${", "no", ""]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=8)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything below the top."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path for key, value in items for path in ((*at, key), *places(value, (*at, key)))]


PLACES = places(TREE)
mutations = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["delete", "replace", "insert"]), words, trees),
    min_size=1,
    max_size=3,
)


def mutated(changes: list[tuple[tuple[Any, ...], str, str, Any]]) -> Any:
    """The tree of every key with some of it deleted, replaced, or something inserted."""
    tree = copy.deepcopy(TREE)
    for path, change, key, value in changes:
        holder = tree
        try:
            for part in path[:-1]:
                holder = holder[part]
            if change == "delete":
                del holder[path[-1]]
            elif change == "replace":
                holder[path[-1]] = value
            elif isinstance(holder, dict):
                holder[key] = value
            else:
                holder.insert(0, value)
        except (KeyError, IndexError, TypeError):  # another change took it away
            continue
    return tree


def told(content: bytes, *overrides: str) -> str | None:
    """What loading says; None where it is read. Any other exception passes."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "run.yaml"
        path.write_bytes(content)
        try:
            config = load_config(path, overrides, {"HOME": "/home/x"})
        except ConfigError as error:
            return str(error).replace(str(path), "run.yaml")
        path.write_text(dump_config(config), encoding="utf-8")
        assert load_config(path, (), {"HOME": "/home/x"}) == config
        return None


def require_lines(message: str | None) -> None:
    for line in (message or "run.yaml: ").split("\n"):
        assert line.startswith(("run.yaml: ", 'override "')), message
        assert line.isprintable(), message
        assert len(line) < 2_000


def test_a_configuration_with_something_changed_is_read_or_told_in_lines() -> None:
    outcomes = {True: 0, False: 0}

    @settings(max_examples=400, deadline=None)
    @given(changes=mutations)
    def check(changes: list[tuple[tuple[Any, ...], str, str, Any]]) -> None:
        content = yaml.safe_dump(mutated(changes), allow_unicode=True, sort_keys=False)
        message = told(content.encode(errors="surrogatepass"))
        outcomes[message is None] += 1
        require_lines(message)

    check()
    assert outcomes[False] >= 100, outcomes


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=120) | st.text(max_size=120).map(lambda text: text.encode(errors="ignore")))
def test_any_bytes_are_read_or_told_in_lines(content: bytes) -> None:
    require_lines(told(content))


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, len(EVERY_KEY) - 1), width=st.integers(0, 12), by=st.text(max_size=4))
def test_a_configuration_with_characters_replaced_is_read_or_told_in_lines(
    at: int, width: int, by: str
) -> None:
    text = EVERY_KEY[:at] + by + EVERY_KEY[at + width :]
    require_lines(told(text.encode(errors="ignore")))


@settings(max_examples=300, deadline=None)
@given(
    overrides=st.lists(
        st.text(max_size=12)
        | st.tuples(st.sampled_from(PLACES), words | st.text(max_size=8)).map(
            lambda one: ".".join(map(str, one[0])) + "=" + one[1]
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_overrides_are_taken_or_told_in_lines(overrides: list[str]) -> None:
    require_lines(told(EVERY_KEY.encode(), *overrides))
