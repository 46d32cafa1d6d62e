"""Read the dense layers of a sentence-transformers folder: one head for every text, or a Router with two.

A Router is read in one form only, that of two heads over the same pooled vector:

    router_config.json   structure: {query: [module, ...], document: [module, ...]}, types: {module: class}
    query_0_Dense/ ...   Dense modules alone, each of one route
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from sbert_train.errors import ModelError
from sbert_train.model.layout import ACTIVATIONS, ROUTER_CONFIG, DenseLayer, activation_path
from sbert_train.model.read_files import brief, inside, kind_of, read_object, require_safetensors, wrong
from sbert_train.model.roles import SIDES


def read_head(folders: Iterable[Path], width: int) -> tuple[DenseLayer, ...]:
    """The dense layers in these folders, of which the first takes `width` numbers.

    Raises:
        ModelError: one is damaged, says what a DenseLayer cannot, or takes another width than it is given.
    """
    layers = []
    for folder in folders:
        layer = _read_dense(folder)
        if layer.in_features != width:
            raise wrong(folder / "config.json", "in_features of module Dense", str(width), layer.in_features)
        layers.append(layer)
        width = layer.out_features
    return tuple(layers)


def read_router(folder: Path, width: int) -> tuple[tuple[DenseLayer, ...], tuple[DenseLayer, ...]]:
    """The heads of a Router, for queries and for documents.

    The route that it takes for a text without a role is not read: of such a text an encoder with two heads makes an
    error.

    Raises:
        ModelError: it is anything else than two chains of Dense modules of their own, to equally many dimensions.
    """
    file = folder / ROUTER_CONFIG
    config = read_object(file)
    structure, types = config.get("structure"), config.get("types")
    if not isinstance(structure, dict) or set(structure) != set(SIDES):
        found = list(structure) if isinstance(structure, dict) else structure
        raise wrong(file, "routes of module Router", "query and document", found)
    if not _are_chains(structure.values()) or not isinstance(types, dict):
        raise wrong(file, "module Router", "a list of modules for each route, and the type of each", config)
    parameters = config.get("parameters") or {}
    if not isinstance(parameters, dict) or parameters.get("route_mappings"):
        raise wrong(file, "parameters of module Router", "no route_mappings", parameters)
    if set(structure["query"]) & set(structure["document"]):
        raise wrong(file, "module Router", "modules of its own in each route", structure)
    heads = {side: read_head(_dense_folders(file, structure[side], types), width) for side in SIDES}
    sizes = {side: head[-1].out_features for side, head in heads.items()}
    if sizes["query"] != sizes["document"]:
        raise wrong(file, "module Router", "as many dimensions from both routes", sizes)
    return heads["query"], heads["document"]


def _are_chains(routes: Iterable[object]) -> bool:
    return all(
        isinstance(route, list) and len(route) > 0 and all(isinstance(module, str) for module in route)
        for route in routes
    )


def _dense_folders(file: Path, modules: Iterable[str], types: Mapping[str, Any]) -> list[Path]:
    for module in modules:
        kind_of(file, str(types.get(module)), ("Dense",))
    return [inside(file, file.parent, "Dense", module) for module in modules]


def _read_dense(folder: Path) -> DenseLayer:
    require_sentence_embedding(folder)
    file, weights = folder / "config.json", folder / "model.safetensors"
    config = read_object(file)
    if config.get("use_residual"):
        raise wrong(file, "use_residual of module Dense", "false", True)
    require_safetensors(folder, weights.name)
    try:
        tensors = load_file(weights)
    except SafetensorError as error:
        raise ModelError(f"{weights} is not a safetensors file ({error}): copy the model again") from error
    sizes = config.get("out_features"), config.get("in_features")
    expected = {"linear.weight": sizes} | ({"linear.bias": sizes[:1]} if config.get("bias", True) else {})
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != expected:
        raise wrong(weights, "module Dense", brief(expected), found)
    return DenseLayer(
        weight=tensors["linear.weight"].float(),
        bias=tensors["linear.bias"].float() if "linear.bias" in tensors else None,
        activation=_activation(file, config.get("activation_function", activation_path("tanh"))),
    )


def require_sentence_embedding(folder: Path) -> None:
    """An error where a module reads or writes anything but the vector of a text."""
    config = read_object(folder / "config.json", optional=True)
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise wrong(folder / "config.json", key, "sentence_embedding, for a module of texts", config[key])


def _activation(file: Path, path: object) -> str:
    paths = {activation_path(name): name for name in ACTIVATIONS}
    short = {f"torch.nn.{path.rpartition('.')[2]}": name for path, name in paths.items()}
    if path not in paths | short:
        raise wrong(file, "activation_function of module Dense", f"one of {', '.join(paths)}", path)
    return (paths | short)[str(path)]
