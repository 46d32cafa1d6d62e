"""The `train` block: names and values are checked, defaults are ours, and transformers gets what was meant."""

from typing import Any

import pytest

from sbert_train.config import RunConfig
from sbert_train.config.reader import parse_yaml
from sbert_train.config.train_keys import (
    ABOVE,
    AT_LEAST,
    EARLY_STOPPING_KEYS,
    RENAMED,
    RESERVED,
    TRAIN_DEFAULTS,
)
from sbert_train.errors import ConfigError
from sbert_train.training import arguments
from sbert_train.training.arguments import early_stopping, training_arguments

EVAL = [{"source": "dev.csv", "task": "sts"}, {"source": "faq.csv", "task": "retrieval"}]


def config(train: str = "{}", *, evaluates: bool = True, **blocks: Any) -> RunConfig:
    return RunConfig.model_validate(
        {
            "output_dir": "runs/x",
            "seed": 5,
            "model": {"base": "some/model"},
            "data": {"train": [{"source": "a.csv"}], "eval": EVAL if evaluates else []},
            "objective": {"name": "in_batch_negatives"},
            "train": parse_yaml(train),
            **blocks,
        }
    )


def complaints(train: str, **blocks: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        training_arguments(config(train, **blocks))
    return str(caught.value).splitlines()


def test_an_empty_block_has_our_defaults() -> None:
    args = training_arguments(config())
    for name, value in TRAIN_DEFAULTS.items():
        if name != "report_to":
            assert getattr(args, name) == value, name
    assert args.report_to == []
    assert args.get_warmup_steps(200) == 20
    assert args.output_dir == "runs/x/checkpoints"
    assert (args.seed, args.data_seed) == (5, 5)
    assert not args.remove_unused_columns
    assert getattr(args.accelerator_config, "split_batches", None) is True
    assert args.disable_tqdm


def test_with_eval_sets_the_best_by_the_first_ones_main_metric_is_kept() -> None:
    args = training_arguments(config())
    assert (args.eval_strategy, args.save_strategy) == ("epoch", "epoch")
    assert args.load_best_model_at_end
    assert args.metric_for_best_model == "eval_dev_spearman_cosine"
    assert args.greater_is_better
    only_retrieval = training_arguments(config(data={"train": [{"source": "a.csv"}], "eval": EVAL[1:]}))
    assert only_retrieval.metric_for_best_model == "eval_faq_ndcg@10"


def test_without_eval_sets_each_epoch_is_saved() -> None:
    args = training_arguments(config(evaluates=False))
    assert (args.eval_strategy, args.save_strategy) == ("no", "epoch")
    assert not args.load_best_model_at_end


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        ("{eval_strategy: steps}", ("steps", 0.1, "steps", 0.1, True)),
        ("{eval_strategy: steps, eval_steps: 20}", ("steps", 20, "steps", 20, True)),
        ("{save_strategy: steps, save_steps: 30}", ("steps", 30, "steps", 30, True)),
        ("{eval_strategy: steps, eval_steps: 5, save_steps: 10}", ("steps", 5, "steps", 10, True)),
        ("{eval_strategy: no}", ("no", None, "epoch", 500, False)),
        ("{save_strategy: no}", ("epoch", None, "no", 500, False)),
        ("{save_strategy: best}", ("epoch", None, "best", 500, True)),
        ("{load_best_model_at_end: no}", ("epoch", None, "epoch", 500, False)),
        (
            "{eval_strategy: steps, save_strategy: epoch, load_best_model_at_end: no}",
            ("steps", 0.1, "epoch", 0.1, False),
        ),
    ],
)
def test_one_strategy_follows_the_other(train: str, expected: tuple[Any, ...]) -> None:
    args = training_arguments(config(train))
    found = (
        args.eval_strategy,
        args.eval_steps,
        args.save_strategy,
        args.save_steps,
        args.load_best_model_at_end,
    )
    assert found == expected


def test_values_are_read_in_the_types_of_transformers() -> None:
    args = training_arguments(
        config(
            "{learning_rate: '3e-5', num_train_epochs: 2, save_total_limit: null, gradient_checkpointing: yes,"
            " bf16: no, per_device_train_batch_size: 16.0, eval_strategy: no, lr_scheduler_type: cosine_with_min_lr,"
            " lr_scheduler_kwargs: {min_lr: 1e-6}, report_to: [tensorboard], seed: 5}"
        )
    )
    assert args.learning_rate == 3e-5
    assert args.num_train_epochs == 2
    assert args.save_total_limit is None
    assert args.gradient_checkpointing is True
    assert (args.per_device_train_batch_size, type(args.per_device_train_batch_size)) == (16, int)
    assert args.lr_scheduler_kwargs == {"min_lr": 1e-6}
    assert args.report_to == ["tensorboard"]


def test_what_is_forced_wins() -> None:
    args = training_arguments(config("{max_steps: 9}"), max_steps=2, output_dir="elsewhere")
    assert (args.max_steps, args.output_dir) == (2, "elsewhere")


WRONG = [
    (
        "{learning_rat: 1}",
        ["train.learning_rat: unknown name", 'did you mean "learning_rate"?', "TrainingArguments"],
    ),
    ("{epochs: 1}", ["train.epochs: unknown name, use num_train_epochs."]),
    ("{warmup_ratio: 0.1}", ["train.warmup_ratio: unknown name, use warmup_steps (below 1 it is a share"]),
    ("{foo: 1}", ["train.foo: unknown name. The names are those of transformers.TrainingArguments"]),
    ("{_n_gpu: 1}", ["train._n_gpu: unknown name"]),
    ("{seed: 6}", ["train.seed: not to be set here: set `seed` at the top"]),
    ("{learning_rate: fast}", ["train.learning_rate: expected a number above 0", 'found "fast"']),
    ("{learning_rate: 0}", ["train.learning_rate: expected a number above 0, found the number 0"]),
    ("{num_train_epochs: true}", ["train.num_train_epochs: expected a number above 0, found true"]),
    ("{per_device_train_batch_size: 0}", ["expected an integer of at least 1, found the number 0"]),
    ("{per_device_train_batch_size: 2.5}", ["expected an integer of at least 1, found the number 2.5"]),
    ("{per_device_train_batch_size: null}", ["expected an integer of at least 1, found null"]),
    ("{logging_first_step: maybe}", ["train.logging_first_step: expected true or false", 'found "maybe"']),
    ("{lr_scheduler_kwargs: 3}", ["train.lr_scheduler_kwargs: expected a mapping", "found the number 3"]),
    ("{lr_scheduler_type: linea}", ["train.lr_scheduler_type: expected linear, cosine,", 'found "linea"']),
    ("{eval_strategy: false}", ["train.eval_strategy: expected no, steps or epoch, found false"]),
    (
        "{optim: adamw}",
        ["train.optim: expected a name such as adamw_torch, adamw_torch_fused", 'found "adamw"'],
    ),
    ("{optim: zzz}", ["train.optim: expected a name such as", 'found "zzz"']),
    (
        "{eval_strategy: steps, save_strategy: epoch}",
        ["train.save_strategy: expected steps, as eval_strategy"],
    ),
    (
        "{eval_strategy: no, load_best_model_at_end: yes}",
        ["train.save_strategy: expected no, as eval_strategy"],
    ),
    (
        "{eval_strategy: steps, eval_steps: 3, save_steps: 7}",
        ["train.save_steps: expected a multiple of train.eval_steps, 3, so", "7"],
    ),
    (
        "{eval_strategy: steps, eval_steps: 0.5, save_steps: 10}",
        ["train.save_steps: expected a multiple of train.eval_steps, 0.5, so", "10"],
    ),
    ("{bf16: yes, fp16: yes}", ["train.fp16: expected one of bf16 and fp16, found both"]),
    ("{fp16: yes, use_cpu: yes}", ["engine.precision: fp16 needs a GPU"]),
    (
        "{per_device_train_batch_size: 1}",
        ["train.per_device_train_batch_size: expected at least 2", "found 1"],
    ),
    ("{early_stopping_patience: 0}", ["train.early_stopping_patience: expected an integer of at least 1"]),
    (
        "{early_stopping_patience: 3, eval_strategy: no}",
        ["train.early_stopping_patience: needs a set under data.eval"],
    ),
    ("{early_stopping_threshold: 0.1}", ["train.early_stopping_threshold: needs early_stopping_patience"]),
    ("{report_to: wandbb}", ['train.report_to: "wandbb" is unknown or not installed', "here are: none"]),
    ("{report_to: null}", ["train.report_to: null is unknown"]),
    (
        "{eval_strategy: epoch, eval_steps: 3}",
        ["train.eval_steps: needs train.eval_strategy: steps, found epoch"],
    ),
    ("{save_strategy: no, save_steps: 3}", ["train.save_steps: needs train.save_strategy: steps, found no"]),
    (
        "{dataloader_persistent_workers: yes}",
        ["train.dataloader_persistent_workers: needs train.dataloader_num_workers"],
    ),
    ("{torch_empty_cache_steps: 0}", ["train: `torch_empty_cache_steps` must be"]),
]


@pytest.mark.parametrize(("train", "words"), WRONG, ids=[train for train, _ in WRONG])
def test_a_wrong_value_is_one_line(train: str, words: list[str]) -> None:
    [line] = complaints(train)
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize("name", RESERVED)
def test_a_name_that_is_not_the_users_says_what_to_use(name: str) -> None:
    [line] = complaints(f"{{{name}: 3}}")
    assert line == f"train.{name}: not to be set here: {RESERVED[name]}"


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert (
        len(complaints("{lr: 1, learning_rate: -1, output_dir: x, report_to: nowhere, bf16: 1, fp16: 1}"))
        == 5
    )


def test_an_evaluation_without_eval_sets_is_an_error() -> None:
    [line] = complaints("{eval_strategy: epoch}", evaluates=False)
    assert line == "train.eval_strategy: epoch, but there is no set under data.eval"


def test_a_value_from_the_environment_is_not_quoted() -> None:
    run = config("{learning_rate: s3cret}")
    run._written = {("train", "learning_rate"): "${KEY}"}
    with pytest.raises(ConfigError, match=r"found \"\$\{KEY\}\"$"):
        training_arguments(run)


def test_one_row_a_batch_is_enough_for_an_objective_without_negatives() -> None:
    run = config("{per_device_train_batch_size: 1}", objective={"name": "cosine_regression"})
    assert training_arguments(run).per_device_train_batch_size == 1


def test_our_tables_name_arguments_that_transformers_has() -> None:
    tables = {*TRAIN_DEFAULTS, *RESERVED, *AT_LEAST, *ABOVE} - set(EARLY_STOPPING_KEYS)
    assert tables <= arguments._NAMES
    assert {use.split()[0] for use in RENAMED.values()} <= arguments._NAMES
    assert not set(RESERVED) & set(TRAIN_DEFAULTS)


@pytest.mark.parametrize("name", ["eval_steps", "save_steps"])
def test_a_number_of_steps_says_when_without_a_strategy(name: str) -> None:
    args = training_arguments(config(f"{{{name}: 3}}"))
    assert (args.eval_strategy, args.eval_steps) == ("steps", 3)
    assert (args.save_strategy, args.save_steps) == ("steps", 3)


def test_early_stopping_is_told_by_the_names_of_the_callback() -> None:
    assert early_stopping(config()) is None
    run = config("{early_stopping_patience: 3, early_stopping_threshold: 0.01}")
    callback = early_stopping(run)
    assert callback is not None
    assert (callback.early_stopping_patience, callback.early_stopping_threshold) == (3, 0.01)
    assert training_arguments(run).load_best_model_at_end


@pytest.mark.parametrize(
    ("engine", "train", "expected"),
    [
        ("auto", "{use_cpu: yes}", "native"),
        ("fp32", "{}", "fp32"),
        ("bf16", "{use_cpu: yes}", "bf16"),
        ("auto", "{use_cpu: yes, bf16: yes}", "bf16"),
        ("bf16", "{use_cpu: yes, bf16: yes}", "bf16"),
        ("auto", "{bf16: no}", "fp32"),
        ("fp32", "{bf16: no}", "fp32"),
    ],
)
def test_precision_is_told_by_engine_or_by_train(
    engine: str, train: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for native in ("bf16", "fp32"):
        monkeypatch.setattr(arguments, "native_precision", lambda use_cpu, native=native: native)
        args = training_arguments(config(train, engine={"precision": engine}))
        found = "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
        assert found == (native if expected == "native" else expected)


@pytest.mark.parametrize(
    ("engine", "train"), [("fp32", "{bf16: yes}"), ("bf16", "{fp16: yes}"), ("bf16", "{bf16: no}")]
)
def test_a_precision_told_twice_must_agree(engine: str, train: str) -> None:
    [line] = complaints(train, engine={"precision": engine})
    assert line.startswith(f"engine.precision: {engine}, but train says ")
