"""A run with engine.compile: it says so, and everything else is as without."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from sbert_train.errors import ModelError
from tests.training.runs import losses, run


@pytest.mark.slow
# torch asks every tensor that it traces for its gradient, and is warned by itself of those that keep none.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # its code generator imports it
def test_a_compiled_run_says_so_and_ends_as_the_same_run_without(tmp_path: Path, tiny_model: Path) -> None:
    found = {}
    for name, wanted in (("plain", False), ("compiled", True)):
        (tmp_path / name).mkdir()
        found[name] = run(tmp_path / name, tiny_model, engine={"compile": wanted})
    [engine] = [line for line in found["compiled"][1] if line.startswith("engine ")]
    assert "; 6 parts of 2 layers compiled in " in engine
    assert not any("compiled" in line for line in found["plain"][1])
    plain, compiled = found["plain"][0], found["compiled"][0]
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-4) and len(losses(plain)) > 3
    weights, expected = (load_file(one.folder.model / "model.safetensors") for one in (compiled, plain))
    assert list(weights) == list(expected)
    for name, tensor in expected.items():
        assert weights[name].allclose(tensor, rtol=1e-2, atol=1e-3), name


def test_a_run_that_does_not_go_packed_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(
        ModelError, match=r"engine\.compile is true, but .* goes padded \(as engine\.packing ask"
    ):
        run(tmp_path, tiny_model, engine={"compile": True, "packing": "padded"})
