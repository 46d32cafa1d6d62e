"""The package holds itself to its rules: no call in it opens what a stranger gives in a way that may run code."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import sbert_train

PACKAGE = Path(sbert_train.__file__).parent
CHECKOUT = PACKAGE.parent


@dataclass(frozen=True)
class Call:
    """A call in the source.

    Attributes:
        place: `room/file.py`.
        name: what is called, as far as it is a dotted name: `AutoModel.from_pretrained`.
        node: the call itself.
    """

    place: str
    name: str
    node: ast.Call

    def keyword(self, name: str) -> str | None:
        """The source of a keyword argument, or None."""
        return next((ast.unparse(one.value) for one in self.node.keywords if one.arg == name), None)


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def calls_in(place: str, source: str) -> Iterator[Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield Call(place, dotted(node.func), node)


def calls() -> Iterator[Call]:
    for file in sorted(PACKAGE.rglob("*.py")):
        yield from calls_in(file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8"))


def says_what_it_trusts(call: Call) -> bool:
    """Left out, transformers asks on the standard input. Where it is no plain False, the configuration has said so."""
    given = call.keyword("trust_remote_code")
    safe = call.keyword("use_safetensors") == "True" or not call.name.startswith("AutoModel")
    return safe and (given == "False" or (given == "trust_remote_code" and call.place == "model/backbone.py"))


def reads_a_repository_alone(call: Call) -> bool:
    """Of the Hub, in the one place that looks first whether a path is of that name; and without code of it."""
    trusted = call.keyword("trust_remote_code")
    return call.place == "data/hub.py" and ast.unparse(call.node.args[0]) == "repo" and trusted is None


def is_our_own_worker(call: Call) -> bool:
    """Processes that encode read the encoder that their parent has just written for them, and nothing else."""
    return call.place == "model/workers.py"


def weights_alone(call: Call) -> bool:
    return call.keyword("weights_only") == "True" or is_our_own_worker(call)


def never(call: Call) -> bool:
    return False


def no_pickles(call: Call) -> bool:
    """False is numpy's own default."""
    return call.keyword("allow_pickle") in (None, "False")


def is_safe_yaml(call: Call) -> bool:
    """Only events and nodes are asked for, of which no value is made but by config/reader.py."""
    return call.keyword("Loader") == "yaml.SafeLoader"


def is_a_name_of_ours(call: Call) -> bool:
    """A module that the source names, not a model or a configuration."""
    return all(isinstance(argument, ast.Constant) for argument in call.node.args)


def looks_for_what_the_source_names(call: Call) -> bool:
    """Or for a package without a dot, which is found without importing it: see test_paths."""
    return is_a_name_of_ours(call) or call.place in ("model/resolve.py", "export/onnx.py")


def has_no_shell(call: Call) -> bool:
    return call.keyword("shell") is None


RULES: Mapping[str, Callable[[Call], bool]] = {
    "from_pretrained": says_what_it_trusts,
    "from_config": says_what_it_trusts,
    "pipeline": never,
    "load_dataset": reads_a_repository_alone,
    "load_dataset_builder": never,
    "load_from_disk": never,
    "torch.load": weights_alone,
    "torch.jit.load": never,
    "torch.hub.load": never,
    "pickle.load": never,
    "pickle.loads": is_our_own_worker,
    "read_pickle": never,
    "joblib.load": never,
    "np.load": no_pickles,
    "numpy.load": no_pickles,
    "evaluate.load": never,
    "yaml.load": never,
    "yaml.unsafe_load": never,
    "yaml.full_load": never,
    "yaml.parse": is_safe_yaml,
    "yaml.compose": is_safe_yaml,
    "eval": never,
    "exec": never,
    "compile": never,
    "__import__": never,
    "import_module": is_a_name_of_ours,
    "find_spec": looks_for_what_the_source_names,
    "runpy.run_path": never,
    "runpy.run_module": never,
    "os.system": never,
    "os.popen": never,
    "subprocess.run": has_no_shell,
    "subprocess.Popen": has_no_shell,
    "extractall": never,
    "unpack_archive": never,
}
"""The end of the name of a call -> whether it may stand where it stands, as it stands."""


def broken(found: Iterator[Call]) -> list[str]:
    return [
        f"{call.place}:{call.node.lineno} {call.name}"
        for call in found
        for name, rule in RULES.items()
        if (call.name == name or call.name.endswith(f".{name}"))
        and not rule(call)
        and not (name in ("eval", "compile") and call.name != name)  # of a module of torch, or of a pattern
    ]


def test_every_call_is_as_it_must_be() -> None:
    assert broken(calls()) == []


def test_the_calls_are_found() -> None:
    found = {
        name for call in calls() for name in RULES if call.name == name or call.name.endswith(f".{name}")
    }
    assert {"from_pretrained", "load_dataset", "torch.load", "np.load", "yaml.compose", "find_spec"} <= found


@pytest.mark.parametrize(
    "line",
    [
        "AutoModel.from_pretrained(folder)",
        "AutoModel.from_pretrained(folder, trust_remote_code=False)",
        "AutoModel.from_pretrained(folder, use_safetensors=True, trust_remote_code=True)",
        "transformers.AutoTokenizer.from_pretrained(folder)",
        "AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)",
        "datasets.load_dataset(repo)",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "pickle.loads(data)",
        "np.load(file, allow_pickle=True)",
        "evaluate.load('pearsonr')",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "yaml.compose(text)",
        "eval(text)",
        "__import__(name)",
        "importlib.import_module(name)",
        "importlib.util.find_spec(name)",
        "subprocess.run(command, shell=True)",
    ],
)
def test_a_careless_call_would_be_found(line: str) -> None:
    assert broken(calls_in("room/file.py", line)) == [f"room/file.py:1 {line.partition('(')[0]}"]


def test_no_csv_is_written_that_a_spreadsheet_would_open() -> None:
    """A cell that begins with = is a formula there. What is written is the embedded data, by its own generator."""
    writers = {
        call.place for call in calls() if call.name.endswith(("csv.writer", "csv.DictWriter", "to_csv"))
    }
    assert writers <= {"data/builtin/generate.py"}
