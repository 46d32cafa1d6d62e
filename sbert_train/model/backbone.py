"""What a sentence encoder needs to know of the transformer inside it: how to load it, its length, its layers."""

from pathlib import Path

import torch
import transformers
from safetensors import SafetensorError
from tokenizers import normalizers
from torch import Tensor, nn
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from sbert_train.data.hints import one_line, shown
from sbert_train.errors import ModelError
from sbert_train.model.foreign_code import refuse_foreign_code, untrusted
from sbert_train.model.layout import Layout
from sbert_train.model.packing import first_position
from sbert_train.model.read_files import read_object


def load_backbone(layout: Layout, trust_remote_code: bool) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The backbone in float32 and its tokenizer, which lower-cases where the layout says so.

    Raises:
        ModelError: transformers cannot load them, only from pickled weights, only in part, or only with code that they
            bring and that is not trusted.
    """
    if not trust_remote_code:
        refuse_foreign_code(layout.backbone)
    try:
        backbone, report = AutoModel.from_pretrained(
            layout.backbone,
            use_safetensors=True,
            trust_remote_code=trust_remote_code,
            dtype=torch.float32,  # the weights that are trained; a stored half precision would be kept otherwise
            output_loading_info=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(layout.backbone, trust_remote_code=trust_remote_code)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise _cannot_load(layout.backbone, error, trust_remote_code) from error
    # transformers would begin these at random, and no embedding depends on the pooler.
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ModelError(
            f"{layout.backbone}: its weights lack {len(missing)} of those of {type(backbone).__name__} "
            f"({', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}); they are those of another model"
        )
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        # What transformers makes of a folder without its files is a tokenizer to which all texts are the same.
        raise ModelError(
            f"{layout.backbone}: its tokenizer knows not one piece of text, so its vocabulary must be missing; copy "
            "the files of the tokenizer, such as tokenizer.json, into the folder"
        )
    if layout.do_lower_case:
        # As part of the tokenizer it is saved with it, so that nobody has to remember the flag.
        backend = tokenizer.backend_tokenizer
        steps = [normalizers.Lowercase()] + ([backend.normalizer] if backend.normalizer else [])
        backend.normalizer = normalizers.Sequence(steps)
    return backbone, tokenizer


def _cannot_load(folder: Path, error: Exception, trust_remote_code: bool) -> ModelError:
    """Why transformers cannot load a folder, in the words of this package where its own do not help."""
    config = read_object(folder / "config.json", optional=True)
    model_type = config.get("model_type")
    is_unknown = isinstance(model_type, str) and model_type not in CONFIG_MAPPING
    if not trust_remote_code and ("trust_remote_code" in str(error) or ("auto_map" in config and is_unknown)):
        return untrusted(folder)
    if is_unknown and "auto_map" not in config:
        return ModelError(
            f"{folder}: transformers {transformers.__version__} has no architecture {shown(model_type)}; a newer one "
            "may have it"
        )
    if "ignore_mismatched_sizes" in str(error):
        return ModelError(
            f"{folder}: its weights have other shapes than its config.json says; they are those of another model"
        )
    return ModelError(f"{folder}: transformers cannot load it: {one_line(error)}")


def save_backbone(
    folder: Path,
    backbone: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    weights: dict[str, Tensor] | None = None,
) -> None:
    """Write a backbone and its tokenizer, as `load_backbone` reads them.

    Args:
        weights: name -> tensor, in place of the backbone's own.
    """
    backbone.save_pretrained(folder, state_dict=weights)
    # Other loaders, such as those in a browser, look for the length of a text nowhere else.
    tokenizer.model_max_length = max_length or tokenizer.model_max_length
    tokenizer.save_pretrained(folder)


def check_max_length(
    base: str | Path,
    backbone: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
) -> None:
    """Raise ModelError where more tokens are asked for than the backbone has positions, or none of a text's own."""
    special = tokenizer.num_special_tokens_to_add()
    if max_length is not None and max_length <= special:
        raise ModelError(
            f"{base}: model.max_length is {max_length}, but {special} of the tokens of each text are special ones; "
            f"expected at least {special + 1}"
        )
    table = getattr(backbone.config, "max_position_embeddings", None)
    if max_length is None or not isinstance(table, int) or table < 1:
        return
    positions = table - first_position(backbone)
    if max_length > positions:
        raise ModelError(
            f"{base}: model.max_length is {max_length}, but this model has {positions} positions"
        )


def layers_of(backbone: PreTrainedModel) -> nn.ModuleList | None:
    """The stack of transformer layers: the longest list of modules, whatever the architecture calls it."""
    stacks = [module for module in backbone.modules() if isinstance(module, nn.ModuleList)]
    return max(stacks, key=len) if stacks else None
