"""The prompts that an evaluation is told: given to a model that carries none, held against those of one that does."""

from collections.abc import Mapping

from sbert_train.data.hints import did_you_mean, listed
from sbert_train.data.roles import TEXT_ROLES
from sbert_train.errors import EvaluationError
from sbert_train.model.encoder import SentenceEncoder
from sbert_train.model.roles import PROMPT_NAMES, named_prompts


def settle_prompts(model: str, encoder: SentenceEncoder, told: Mapping[str, str] | None) -> None:
    """Give the encoder the prompts that eval is told, by role, or see that it carries them.

    A model that was trained with prompts carries them, and a base that it is compared with usually carries none, yet
    should read the same texts. Prompts are compared by the names under which a model looks them up (a positive and
    a negative are both `document`); those of names that no role asks for do not count. What eval is not told of, a
    model keeps: a base may bring a prompt of its own besides those that a configuration sets.

    Raises:
        EvaluationError: there is no such role, or the model carries other prompts; the message quotes both.
        ModelError: two roles of one name are told different prompts.
    """
    if not told:
        return
    for role in told:
        if role not in TEXT_ROLES:
            raise EvaluationError(
                f"prompts: there is no role {role!r}{did_you_mean(role, TEXT_ROLES)}; roles of texts are "
                f"{listed(TEXT_ROLES)}"
            )
    named = named_prompts(told)
    carried = _carried(encoder)
    if not carried:
        encoder.prompts.update(named)
    elif any(text != carried.get(name, "") for name, text in named.items()):
        raise EvaluationError(
            f"{model} carries the prompts {_quoted(carried)}, but eval is told {_quoted(named)} (query is that of an "
            "anchor, document that of a positive or negative); tell it those that the model carries, or none, so that "
            "every model takes its own"
        )


def _carried(encoder: SentenceEncoder) -> dict[str, str]:
    """Name -> text of the prompts that some role of a text would be given, but for empty ones."""
    asked = {*TEXT_ROLES, *PROMPT_NAMES.values(), encoder.default_prompt_name}
    return {
        PROMPT_NAMES.get(name, name): text for name, text in encoder.prompts.items() if text and name in asked
    }


def _quoted(prompts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {text!r}" for name, text in sorted(prompts.items()))
