"""Rows of texts -> rows of token ids: once, by several processes, cached under a fingerprint of all they depend on.

The cache is that of `datasets`: the result lies beside the rows that it was made from, so that the next run, also in
another process, finds it and does not tokenise.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tokenizers
import transformers
from datasets import Features, List, Value
from transformers import PreTrainedTokenizerBase

from sbert_train.data.cache import fingerprint
from sbert_train.data.quiet import quiet_libraries
from sbert_train.data.roles import TEXT_ROLES
from sbert_train.data.text_ids import longest_read, token_ids

BATCH_ROWS = 1_000
ROWS_PER_PROCESS = 5_000  # below this a process takes longer to start than to tokenise
ROWS_WITH_PROGRESS = 20_000
TOKEN_IDS = pa.list_(pa.int32())

VERSIONS = [tokenizers.__version__, transformers.__version__]


def tokenise(
    rows: datasets.Dataset,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int | None,
    prompts: Mapping[str, str] | None = None,
    num_proc: int | None = None,
) -> datasets.Dataset:
    """Replace the texts of every role by their token ids.

    Args:
        rows: columns as in `LoadedSet.rows`.
        tokenizer: of any model that `AutoTokenizer` loads.
        max_length: tokens to keep of a text, special tokens included; None for all.
        prompts: role -> text that is put before the texts of that role; roles without one stay as they are.
        num_proc: processes; None for one per 5,000 rows and at most one per core.

    Returns:
        The same rows in the same order: text roles are lists of int32 with special tokens and without padding,
        `negative` is a list of such lists, `score` and `label` are as they were.
    """
    processes = num_proc or useful_processes(len(rows))
    roles = [role for role in TEXT_ROLES if role in rows.column_names]
    prefixes = {role: (prompts or {}).get(role, "") for role in roles}
    with quiet_libraries(progress=len(rows) >= ROWS_WITH_PROGRESS), environment_restored():
        tokenised = rows.with_format("arrow").map(
            partial(tokenise_table, tokenizer=tokenizer, max_length=max_length, prefixes=prefixes),
            batched=True,
            batch_size=BATCH_ROWS,
            features=token_features(rows.features, roles),
            num_proc=processes if processes > 1 else None,
            new_fingerprint=fingerprint(
                rows._fingerprint, tokenizer_identity(tokenizer), max_length, prefixes, VERSIONS
            ),
            desc="Tokenising",
        )
    return tokenised.with_format(None)


def tokenise_table(
    table: pa.Table,
    *,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None,
    prefixes: Mapping[str, str],
) -> pa.Table:
    """One batch of rows: each role in `prefixes` becomes a column of token ids."""
    for role, prefix in prefixes.items():
        column = table[role].combine_chunks()
        is_nested = pa.types.is_list(column.type)
        texts = (column.flatten() if is_nested else column).to_pylist()
        # Each distinct text once: every premise of SNLI stands in three rows.
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = token_ids([prefix + text for text in place], tokenizer, max_length)
        ids = pa.array([distinct[place[text]] for text in texts], TOKEN_IDS)
        if is_nested:
            lengths = pc.list_value_length(column).to_numpy()
            ids = pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32), ids)
        table = table.set_column(table.column_names.index(role), role, ids)
    return table


def very_long_texts(
    rows: datasets.Dataset, roles: Sequence[str], max_length: int | None, prompts: Mapping[str, str]
) -> int:
    """How many texts of these roles are cut before they are tokenised; arguments as for `tokenise`."""
    limit = longest_read(max_length)
    if limit is None:
        return 0
    table: pa.Table = rows.select_columns(list(roles)).with_format("arrow")[:]
    count = 0
    for role in roles:
        column = table[role]
        texts = column if pa.types.is_string(column.type) else pc.list_flatten(column)
        longer = pc.greater(pc.utf8_length(texts), limit - len(prompts.get(role, "")))
        count += pc.sum(longer).as_py() or 0
    return count


def token_features(features: Features, roles: Sequence[str]) -> Features:
    """The features of a tokenised data set: a list of int32 where a role had a text."""
    ids = List(Value("int32"))
    of_role = {role: List(ids) if isinstance(features[role], List) else ids for role in roles}
    return Features({column: of_role.get(column, kind) for column, kind in features.items()})


def tokenizer_identity(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    """What the token ids of a text depend on, as JSON can hold it.

    Of a serialised tokenizer the part before its tokens is left out: it holds the truncation and the padding, which
    every call changes.
    """
    if tokenizer.is_fast:
        content: Any = tokenizer.backend_tokenizer.to_str().partition('"added_tokens"')[2]
    else:
        content = [tokenizer.get_vocab(), tokenizer.init_kwargs]
    return [
        type(tokenizer).__name__,
        content,
        tokenizer.truncation_side,
        getattr(tokenizer, "split_special_tokens", False),
    ]


def useful_processes(rows: int) -> int:
    """How many processes tokenise this many rows fastest."""
    # Containers and batch systems may give a process fewer cores than the machine has.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(rows // ROWS_PER_PROCESS, cores))


@contextmanager
def environment_restored() -> Iterator[None]:
    """Undo what `datasets.map` does to the environment when it starts processes.

    It sets TOKENIZERS_PARALLELISM, which would slow every later use of a tokenizer in this process, and leaves a copy
    in the place of `os.environ`, whose changes the holders of the first no longer see.
    """
    environment, name = os.environ, "TOKENIZERS_PARALLELISM"
    before = environment.get(name)
    try:
        yield
    finally:
        os.environ = environment  # noqa: B003
        if before is None:
            environment.pop(name, None)
        else:
            environment[name] = before
