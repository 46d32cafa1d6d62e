"""How a card says that its model is used: code that runs as it stands, once PLACE is the model's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.head import TwoHeads, layers_of_head
from sbert_train.model.layout import DenseLayer
from sbert_train.model.roles import SIDES
from sbert_train.model.write_layout import dense_folders

PLACE = "path/or/id/of/this/model"
"""What stands for the model in the card's code."""

_QUERIES = ["Where does the cat sleep?"]
_DOCUMENTS = ["A cat sleeps on the mat.", "The dog sleeps in the garden behind the house."]
_SENTENCES = ["A cat sleeps on the mat.", "The mat by the door has a sleeping cat on it."]

_ACTIVATIONS: Mapping[str, str] = {
    "tanh": "torch.tanh",
    "relu": "torch.relu",
    "gelu": "F.gelu",
    "silu": "F.silu",
    "sigmoid": "torch.sigmoid",
    "identity": "torch.nn.Identity()",
}

# tokens: (N, L, H), right-padded; mask: (N, L, 1), 1 for a token.
_POOLINGS: Mapping[str, Sequence[str]] = {
    "mean": ["vectors = (tokens * mask).sum(1) / mask.sum(1)"],
    "mean_sqrt_len": ["vectors = (tokens * mask).sum(1) / mask.sum(1).sqrt()"],
    "weighted_mean": [
        "weights = mask * mask.cumsum(1)",
        "vectors = (tokens * weights).sum(1) / weights.sum(1)",
    ],
    "cls": ["vectors = tokens[:, 0]"],
    "last": ["vectors = tokens[torch.arange(len(tokens)), mask.sum(1).squeeze(-1) - 1]"],
    "max": ["vectors = tokens.masked_fill(mask == 0, -torch.inf).amax(1)"],
}
_WITHOUT_MASK = ("cls",)


@dataclass(frozen=True)
class Side:
    """Texts that are embedded alike.

    Attributes:
        variable: what their embeddings are called.
        texts: examples.
        role: for `SentenceEncoder.encode`; None for any.
        prompt_name: for sentence-transformers; None for the model's default.
        prompt: what is put before each.
    """

    variable: str
    texts: Sequence[str]
    role: str | None
    prompt_name: str | None
    prompt: str


def sides_of(encoder: SentenceEncoder) -> list[Side]:
    """The kinds of texts that a model tells apart: by its two heads, or by the prompts that it has."""

    def side(variable: str, texts: Sequence[str], role: str | None) -> Side:
        name = role if role in encoder.prompts else None
        return Side(variable, texts, role, name, encoder.prompt_for(role))

    if isinstance(encoder.head, TwoHeads) or any(encoder.prompts.get(name) for name in SIDES):
        return [side("queries", _QUERIES, "query"), side("documents", _DOCUMENTS, "document")]
    if any(encoder.prompts.get(name) for name in ("sentence1", "sentence2")):
        return [side("first", _SENTENCES[:1], "sentence1"), side("second", _SENTENCES[1:], "sentence2")]
    return [side("embeddings", _SENTENCES, None)]


def brings_code(encoder: SentenceEncoder) -> bool:
    """Whether the model is of an architecture, or has a tokenizer, whose Python code lies in its folder."""
    parts = (encoder.backbone, encoder.tokenizer)
    return not all(type(one).__module__.startswith("transformers.") for one in parts)


def trusting(encoder: SentenceEncoder) -> str:
    """The argument without which such a model is not loaded."""
    return ", trust_remote_code=True" if brings_code(encoder) else ""


def with_sentence_transformers(encoder: SentenceEncoder) -> str:
    """Code that embeds texts with sentence-transformers; with two heads it needs version 5.1."""
    two = isinstance(encoder.head, TwoHeads)
    lines = [
        "from sentence_transformers import SentenceTransformer",
        "",
        f'model = SentenceTransformer("{PLACE}"{trusting(encoder)})',
    ]
    sides = sides_of(encoder)
    for one in sides:
        call = f"encode_{one.role}" if two else "encode"
        named = "" if two or one.prompt_name is None else f', prompt_name="{one.prompt_name}"'
        lines.append(f"{one.variable} = model.{call}({_listed(one.texts)}{named})")
    return "\n".join(
        [*lines, f"print(model.similarity({sides[0].variable}, {sides[-1].variable}))"],
    )


def with_transformers(encoder: SentenceEncoder) -> str | None:
    """Code that does the same with transformers alone; None where it would not be the same: of a model with code of its
    own, and of one that cannot fill up a batch."""
    if brings_code(encoder) or encoder.tokenizer.pad_token is None:
        return None
    body = [*_loading(encoder), "", "", *_function(encoder), "", "", *_calls(encoder)]
    return "\n".join([*_imports("\n".join(body)), "", *body])


def _imports(body: str) -> list[str]:
    """What the rest of the code needs."""
    lines = {
        "torch.": "import torch",
        "load_file(": "from safetensors.torch import load_file",
        "F.": "from torch.nn import functional as F",
        "AutoModel.": "from transformers import AutoModel, AutoTokenizer",
        "cached_file(": "from transformers.utils import cached_file",
    }
    return [line for used, line in lines.items() if used in body]


def _loading(encoder: SentenceEncoder) -> list[str]:
    side = "" if encoder.tokenizer.padding_side == "right" else ', padding_side="right"'
    lines = [
        f'place = "{PLACE}"',
        f"tokenizer = AutoTokenizer.from_pretrained(place{side})",
        "model = AutoModel.from_pretrained(place).eval()",
    ]
    if encoder.head is None:
        return lines
    query, document = layers_of_head(encoder.head)
    lines += [
        "",
        "",
        "def dense(folder, activation):",
        '    layer = load_file(cached_file(place, f"{folder}/model.safetensors"))',
        '    weight, bias = layer["linear.weight"], layer.get("linear.bias")',
        "    return lambda vectors: activation(F.linear(vectors, weight, bias))",
        "",
        "",
    ]
    if document is None:
        return [*lines, f"head = {_chain(query, None)}"]
    return [
        *lines,
        "heads = {",
        f'    "query": {_chain(query, "query")},',
        f'    "document": {_chain(document, "document")},',
        "}",
    ]


def _chain(layers: Sequence[DenseLayer], side: str | None) -> str:
    folders = dense_folders(len(layers), side)
    calls = (
        f'dense("{folder}", {_ACTIVATIONS[layer.activation]})'
        for folder, layer in zip(folders, layers, strict=True)
    )
    return f"[{', '.join(calls)}]"


def _function(encoder: SentenceEncoder) -> list[str]:
    two = isinstance(encoder.head, TwoHeads)
    parameters = ["texts", *(["side"] if two else []), *(['prompt=""'] if _has_prompts(encoder) else [])]
    texts = "[prompt + text for text in texts]" if _has_prompts(encoder) else "texts"
    cut = "" if encoder.max_length is None else f"truncation=True, max_length={encoder.max_length}, "
    lines = [
        f"def encode({', '.join(parameters)}):",
        f'    batch = tokenizer({texts}, padding=True, {cut}return_tensors="pt")',
        "    with torch.no_grad():",
        "        tokens = model(**batch).last_hidden_state",
    ]
    if encoder.pooling not in _WITHOUT_MASK:
        lines.append('    mask = batch["attention_mask"].unsqueeze(-1)')
    lines += [f"    {line}" for line in _POOLINGS[encoder.pooling]]
    if encoder.head is not None:
        lines += [f"    for layer in {'heads[side]' if two else 'head'}:", "        vectors = layer(vectors)"]
    return [*lines, f"    return {'F.normalize(vectors, dim=-1)' if encoder.normalize else 'vectors'}"]


def _calls(encoder: SentenceEncoder) -> list[str]:
    two = isinstance(encoder.head, TwoHeads)
    sides = sides_of(encoder)
    lines = []
    for one in sides:
        told = [
            _listed(one.texts),
            *([f'"{one.role}"'] if two else []),
            *([f"prompt={one.prompt!r}"] if one.prompt else []),
        ]
        lines.append(f"{one.variable} = encode({', '.join(told)})")
    return [*lines, f"print({_similarity(encoder, sides[0].variable, sides[-1].variable)})"]


def _has_prompts(encoder: SentenceEncoder) -> bool:
    return any(one.prompt for one in sides_of(encoder))


def _similarity(encoder: SentenceEncoder, one: str, two: str) -> str:
    kind = encoder.similarity or "cosine"
    if kind == "dot" or (kind == "cosine" and encoder.normalize):
        return f"{one} @ {two}.T"
    if kind == "cosine":
        return f"F.cosine_similarity({one}[:, None], {two}[None], dim=-1)"
    return f"-torch.cdist({one}, {two}{', p=1' if kind == 'manhattan' else ''})"


def _listed(texts: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"
