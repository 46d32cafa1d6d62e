"""Wrong configurations, models and options of commands, with what must be said."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

from tests.wrong_entry import Wrong, a_model, block, command, run_with

KEYS = [
    block("an unknown key", "sed", "3", 'run.yaml: sed: unknown key, did you mean "seed"? Known: output_dir, seed'),
    block("an unknown key of the model", "model", "{base: model, norm: true}", "model.norm: unknown key"),
    block("an unknown key of a set", "data", "{train: [{source: pairs.csv, colums: {}}]}",
          'data.train.0.colums: unknown key, did you mean "columns"?'),
    block("an unknown role", "data", "{train: [{source: pairs.csv, columns: {anchr: x}}]}",
          'data.train.0.columns.anchr: unknown key, did you mean "anchor"?'),
    block("an option of another objective", "objective", "{name: triplet, scale: 3}",
          "objective.scale: unknown key of objective triplet", "Known: matryoshka_dims, matryoshka_weights, "),
    block("an unknown objective", "objective", "{name: mnrl}", "objective.name: expected in_batch_negatives, ",
          'found "mnrl"'),
    block("an unknown training argument", "train", "{learning_rat: 1e-5}",
          'train.learning_rat: unknown name, did you mean "learning_rate"?', "transformers.TrainingArguments"),
    block("a training argument that the run sets itself", "train", "{output_dir: x}",
          "train.output_dir: not to be set here"),
    Wrong("a configuration without a model", ("run.yaml: model: missing, and needed",), config=run_with(model=None)),
    Wrong("a configuration without data", ("run.yaml: data: missing, and needed",), config=run_with(data=None)),
    Wrong("a configuration without an objective", ("objective: missing, and needed: the loss",),
          config=run_with(objective=None)),
    Wrong("several things at once",
          ("run.yaml: sed: unknown key", "run.yaml: seed: expected an integer", "model.pooling: expected mean"),
          config=run_with(sed="3", seed="x", model="{base: model, pooling: avg}"), lines=3),
    Wrong("a wrong value hides none elsewhere",
          ("unknown key, did you mean \"seed\"", "train.lr: unknown name, use learning_rate", "no folder ./no here",
           "nowhere.csv", "line 3: expected 2 fields", "data.eval.0.split"),
          {"bad.csv": "sentence1,sentence2\nthe cat,a cat\nthe dog\n"},
          run_with(sed="3", train="{lr: 1, max_steps: 1}", model="{base: ./no}",
                   data="{train: [{source: nowhere.csv}, {source: bad.csv}], "
                        "eval: [{source: scored.csv, task: sts, split: 3, columns: {score: nothing}}]}"), lines=6),
    Wrong("a misspelt block of eval sets is no reason to complain of the train block", ("data.evals: unknown key",),
          config=run_with(data="{train: [{source: pairs.csv}], evals: []}",
                          train="{eval_strategy: steps, eval_steps: 5, save_steps: 5, max_steps: 9}")),
    Wrong("a wrong option of the objective hides no broken file", ("objective.scal: unknown key", "line 3: expected 2"),
          {"bad.csv": "sentence1,sentence2\nthe cat,a cat\nthe dog\n"},
          run_with(data="{train: [{source: bad.csv}]}", objective="{name: in_batch_negatives, scal: 3}"), lines=2),
    Wrong("an override that cannot be read is not taken for what the file says",
          ('override "output_dir:run": expected key.path=value',), config=run_with(output_dir="model"),
          arguments=("fit", "--config", "run.yaml", "output_dir:run")),
    Wrong("a home of nobody", ("no such file: ~no_such_user/x.csv", "seed: expected an integer"),
          config=run_with(data="{train: [{source: ~no_such_user/x.csv}]}", seed="x"), lines=2),
    Wrong("the best by steps without an eval set", ("train.eval_strategy: steps, but there is no set under data.eval",),
          config=run_with(train="{eval_strategy: steps, save_strategy: steps, load_best_model_at_end: true}")),
    Wrong("a wrong value beside a path from the environment", ("sed: unknown key", "${SBERT_TRAIN_SECRET}"),
          config=run_with(sed="3", data="{train: [{source: \"${SBERT_TRAIN_SECRET}\"}]}"), lines=2,
          environ={"SBERT_TRAIN_SECRET": "hidden/place.csv"}),
    Wrong("several training arguments at once",
          ("train.lr: unknown name", "train.num_train_epochs: expected a number", "train.eval_strategy: "),
          config=run_with(train="{lr: 1, num_train_epochs: many, eval_strategy: sometimes}"), lines=3),
]  # fmt: skip

TYPES = [
    block("a number as text", "output_dir", "7", "output_dir: expected text, found the number 7", "put quotes"),
    block("true as a seed", "seed", "true", "seed: expected an integer", "found true"),
    block("a seed below zero", "seed", "-1", "seed: expected an integer of at least 0", "found the number -1"),
    block("a model that is a text", "model", "some/model", "model: expected a mapping with the keys base"),
    block("a set that is a text", "data", "{train: [pairs.csv]}", 'data.train.0: expected a mapping', '"pairs.csv"'),
    block("a line break in a path", "data", '{train: [{source: "a\\nb.csv"}]}',
          'data.train.0.source: expected a name without line breaks and control characters, found "a b.csv"'),
    block("a zero in a path", "output_dir", '"a\\0b"', "output_dir: expected a name without line breaks and control"),
    block("an escape in a model", "model", '{base: "\\e[31mred"}', 'model.base: expected a name without', '"[31mred"'),
    block("a name too long for a file", "data", "{train: [{source: " + "a" * 300 + ".csv}]}",
          "data.train.0.source: expected a name of at most 255 bytes between two slashes"),
    block("a path too long for a system", "output_dir", "run/" * 1_001, "output_dir: expected a name of at most 255"),
    block("no training set", "data", "{train: []}", "data.train: expected a list of mappings", "found an empty list"),
    block("a batch of no rows", "train", "{per_device_train_batch_size: 0}",
          "train.per_device_train_batch_size: expected an integer of at least 1"),
    block("an infinite learning rate", "train", "{learning_rate: .inf}", "learning_rate: expected a finite number"),
    block("a learning rate in words", "train", "{learning_rate: small}",
          'train.learning_rate: expected a number', 'found "small"'),
    block("a weight that is not a number", "data", "{train: [{source: pairs.csv, weight: .nan}]}",
          "data.train.0.weight: expected a number above 0"),
    block("a policy that there is not", "data", "{train: [{source: pairs.csv, policy: {unlabelled: keep}}]}",
          'data.train.0.policy.unlabelled: expected refuse or drop, found "keep"'),
    block("a feature of a later version", "data", "{train: [{source: pairs.csv}], streaming: true}",
          "data.streaming: not available in this version, leave it false"),
    block("an unknown optimizer", "train", "{optim: adam_v}", "train.optim: expected a name such as"),
]  # fmt: skip

EVAL = "eval: [{source: scored.csv, task: sts, score_range: [0, 5]}]"

TOGETHER = [
    block("in-batch negatives of batches of one row", "train", "{per_device_train_batch_size: 1}",
          "train.per_device_train_batch_size: expected at least 2, as objective in_batch_negatives compares"),
    block("a Matryoshka dimension beyond the model's", "objective",
          "{name: in_batch_negatives, matryoshka_dims: [64, 16]}",
          "objective.matryoshka_dims: expected at most 32, the dimensions of the model, found 64"),
    block("weights of other dimensions than there are", "objective",
          "{name: in_batch_negatives, matryoshka_dims: [16, 8], matryoshka_weights: [1]}",
          "objective.matryoshka_weights: expected 2 numbers, one for each of matryoshka_dims"),
    block("a scale and a temperature", "objective", "{name: in_batch_negatives, scale: 3, temperature: 0.3}",
          "objective.temperature: expected scale or temperature (1 / scale), not both"),
    block("more tokens than the model has positions", "model", "{base: model, max_length: 500}",
          "model: model.max_length is 500, but this model has 66 positions"),
    block("more layers frozen than there are", "model", "{base: model, freeze: 9}",
          "model.freeze is 9, but this backbone has 2 layers"),
    block("nothing left to train", "model", "{base: model, freeze: backbone}",
          "model.freeze: nothing is left to train", "freeze less, or add model.head"),
    Wrong("adapters and a frozen backbone",
          ("model.freeze: with model.lora only the adapters train", "model.lora: its adapters are all that trains"),
          config=run_with(model="{base: model, lora: {}, freeze: embeddings}"), lines=2),
    Wrong("two heads where one would stay random",
          ("model.head.shared: false, but no training set has a text for the document head", "set it to true"),
          {"one.csv": "sentence1,label\na cat,0\na dog,0\na man,1\na sun,1\n"},
          run_with(model="{base: model, head: {dim: 8, shared: false}}", data="{train: [{source: one.csv}]}",
                   objective="{name: batch_triplet}", train="{max_steps: 1, per_device_train_batch_size: 4}")),
    block("an evaluation without a set for it", "train", "{eval_strategy: steps, eval_steps: 1}",
          "train.eval_strategy: steps, but there is no set under data.eval"),
    Wrong("steps of an evaluation by epochs", ("train.eval_steps: needs train.eval_strategy: steps, found epoch",),
          config=run_with(data="{train: [{source: pairs.csv}], " + EVAL + "}",
                          train="{eval_strategy: epoch, eval_steps: 2}")),
    block("early stopping without an evaluation", "train", "{early_stopping_patience: 2}",
          "train.early_stopping_patience: needs a set under data.eval"),
    block("half precision in two ways", "train", "{bf16: true, fp16: true}", "one of bf16 and fp16, found both"),
    Wrong("fp16 on a CPU", ("engine.precision: fp16 needs a GPU; expected bf16, fp32 or auto on a CPU",),
          config=run_with(engine="{precision: fp16}", train="{use_cpu: true, per_device_train_batch_size: 2}")),
    block("no token of a text", "model", "{base: model, max_length: 2}",
          "model: model.max_length is 2, but 2 of the tokens of each text are special ones; expected at least 3"),
    block("two sets of one name", "data", "{train: [{source: pairs.csv}, {source: pairs.csv}]}",
          "data.train.1.name: data.train.0 has this name, too"),
    block("more sets in a batch than there are", "data",
          "{train: [{source: pairs.csv}], mixing: {datasets_per_batch: 2}}",
          "data.mixing.datasets_per_batch: expected at most 1, the number of training sets"),
    block("an evaluation that lacks a role", "data",
          "{train: [{source: pairs.csv}], eval: [{source: pairs.csv, task: sts}]}", "sts", "score", "pairs"),
    block("an evaluation of a classifier that nothing trains", "data",
          "{train: [{source: pairs.csv}], eval: [{source: labelled.csv, task: nli}]}",
          "task nli of eval set labelled judges the classifier that objective softmax trains"),
]  # fmt: skip

YAML = [
    Wrong("a configuration that is not there", ("nowhere.yaml",), arguments=("fit", "--config", "nowhere.yaml")),
    Wrong("a folder as a configuration", ("model: expected a YAML file, found a folder",),
          arguments=("fit", "--config", "./model")),
    Wrong("an empty configuration", ("run.yaml: the file is empty",), config=""),
    Wrong("a configuration that is a list", ("expected `key: value` lines at the top level",), config="- a\n"),
    Wrong("a configuration that is no YAML", ("run.yaml: line 1", "not valid YAML"), config="a: [1, 2"),
    Wrong("a tab as indentation", ("run.yaml: line 2", "not valid YAML", "; indent with spaces"),
          config="model:\n\tbase: x\n"),
    Wrong("a key that is given twice", ('run.yaml: line 7: key "output_dir" was given before, on line 1',),
          config=run_with() + "output_dir: other\n"),
    Wrong("an anchor and an alias", ("run.yaml: line 1: anchors (&) and aliases (*) are not supported",),
          config="output_dir: &x run\nseed: *x\n"),
    Wrong("a tag that would run code", ("run.yaml: line 1: tags (", "are not supported"),
          config="output_dir: !!python/object/apply:os.system ['touch owned']\n"),
    Wrong("a tag that converts", ("run.yaml: line 1: tags (", "are not supported"), config="seed: !!str 3\n"),
    Wrong("a bomb of aliases", ("run.yaml: line 1: anchors (&)",),
          config="a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"),
    Wrong("a bomb of brackets", ("run.yaml: line 1: nested more than 20 deep",), config="seed: " + "[" * 5_000),
    Wrong("a configuration of two megabytes", ("run.yaml: expected a configuration, found a file of more than",),
          config="a: " + "x" * 2_000_000),
    Wrong("a configuration that is not UTF-8", ("run.yaml: line 2: not UTF-8",), config=b"seed: 3\n# caf\xe9\n"),
    Wrong("two documents", ("run.yaml: line 2: a second document begins here",), config="seed: 3\n---\nseed: 4\n"),
    Wrong("a variable that is empty",
          ("model.base: expected text, but what ${SBERT_TRAIN_EMPTY} asks for is set and empty",),
          config=run_with(model='{base: "${SBERT_TRAIN_EMPTY}"}'), environ={"SBERT_TRAIN_EMPTY": ""}),
    block("a variable that is not set", "output_dir", "${SBERT_TRAIN_NOWHERE}/run",
          "output_dir: the environment variable SBERT_TRAIN_NOWHERE is not set"),
    block("a variable without a name", "output_dir", "${}/run", "output_dir: expected ${NAME}, the name of an"),
    Wrong("a secret of the environment is not quoted", ('model.pooling: expected mean', '${SBERT_TRAIN_SECRET}'),
          config=run_with(model="{base: model, pooling: '${SBERT_TRAIN_SECRET}'}"),
          environ={"SBERT_TRAIN_SECRET": "hunter2"}),
    command("an override without a value", "fit --config run.yaml seed", 'override "seed": expected key.path=value'),
    command("an override of an unknown key", "fit --config run.yaml sed=3", 'override "sed=3": sed: unknown key'),
    command("an override below a text", "fit --config run.yaml output_dir.x=3", 'is "run", which has no "x"'),
    command("an override beyond a list", "fit --config run.yaml data.train.7.source=a.csv",
            "data.train is a list: expected a number from 0 to 1"),
]  # fmt: skip


def remove(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: str | bytes) -> Any:
    return lambda folder: (folder / name).write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


def edit(name: str, **changes: Any) -> Any:
    def change(folder: Path) -> None:
        old = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**old, **changes}))

    return change


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def only_a_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Owned()))


class Owned:
    """What a malicious file of weights holds: unpickled, it writes a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path("owned").write_text, ("x",)


def modules(*entries: tuple[str, str]) -> str:
    return json.dumps([{"idx": i, "name": str(i), "path": p, "type": t} for i, (p, t) in enumerate(entries)])


ROOT, POOLING = ("", "sentence_transformers.models.Transformer"), "sentence_transformers.models.Pooling"

MODELS = [
    block("a model that is not there", "model", "{base: ./no-model}", "no folder ./no-model here;"),
    block("a model that is a file", "model", "{base: pairs.csv}", "pairs.csv is a file; expected the folder of"),
    block("a package that is not installed", "model", "{base: 'package://no_such_module/model'}",
          "the package no_such_module is not installed"),
    block("a path out of a package", "model", "{base: 'package://sbert_train/../model'}",
          "expected package://module/folder, with the folder inside of the package"),
    block("a revision of a folder", "model", "{base: ./model, revision: main}", "only a Hub id has revisions"),
    a_model("an empty folder", emptied, "has no config.json"),
    a_model("a model without weights", remove("model.safetensors"), "expected model.safetensors, found no weights"),
    a_model("weights in a pickle", only_a_pickle, "expected model.safetensors, found pytorch_model.bin"),
    a_model("weights cut short", write("model.safetensors", b"\x08\0\0\0\0\0\0\0{"), "transformers cannot load"),
    a_model("a config that is no JSON", write("config.json", "{"), "config.json"),
    a_model("a config that is a list", write("config.json", "[]"), "config.json", "expected a JSON object"),
    a_model("an unknown architecture", edit("config.json", model_type="nonsense"),
            "has no architecture 'nonsense'; a newer one may have it"),
    a_model("an unknown architecture with half of its code",
            edit("config.json", model_type="mine", auto_map={"AutoModel": "code.Model"}),
            "needs Python code that it brings", "code.Model"),
    a_model("weights of another size", edit("config.json", hidden_size=64), "its weights have other shapes"),
    a_model("more layers than there are weights", edit("config.json", num_hidden_layers=5), "its weights lack"),
    a_model("code in the folder of the model",
            edit("config.json", model_type="mine", auto_map={"AutoModel": "code.Model", "AutoConfig": "code.Config"}),
            "needs Python code that it brings", "with model.trust_remote_code=true"),
    a_model("a module that is the model's own", write("modules.json", modules(ROOT, ("1_Pooling", "my_code.Pooling"))),
            "my_code.Pooling"),
    a_model("a module path out of the folder", write("modules.json", modules(ROOT, ("../1_Pooling", POOLING))),
            '"../1_Pooling"'),
    a_model("a list of modules that is no list", write("modules.json", "{}"), "modules.json"),
    a_model("a pooling that is not there", remove("1_Pooling/config.json"), "1_Pooling/config.json is missing"),
    a_model("a model without a tokenizer", without_tokenizer, "copy the files of the tokenizer"),
    a_model("a tokenizer that is no JSON", write("tokenizer.json", "{"), "transformers cannot load it"),
    a_model("an adapter beside the model", write("adapter_config.json", "{}"), "holds an adapter beside its model"),
]  # fmt: skip

COMMANDS = [
    Wrong("a metric that no eval set gives", ("metric_for_best_model: no eval set gives x_y", "x_spearman_cosine"),
          config=run_with(train="{metric_for_best_model: eval_x_y, max_steps: 1}", data="{train: [{source: pairs.csv}],"
                          " eval: [{name: x, task: sts, source: scored.csv, score_range: [0, 5]}]}")),
    block("a schedule with an option that it has not", "train", "{lr_scheduler_kwargs: {foo: 1}, max_steps: 1}",
          "train.lr_scheduler_kwargs", "foo"),
    block("an argument that the optimizer does not take", "train", "{optim_args: 'foo=1', max_steps: 1}",
          "train.optim_args: expected arguments that optim adamw_torch_fused takes from here, found foo=1"),
    block("an argument of an optimizer without a value", "train", "{optim_args: foo}", "train.optim_args"),
    Wrong("saves between evaluations", ("train.save_steps: expected a multiple of train.eval_steps, 3, so", "found 4"),
          config=run_with(train="{eval_steps: 3, save_steps: 4, max_steps: 9}", data="{train: [{source: pairs.csv}],"
                          " eval: [{name: x, task: sts, source: scored.csv, score_range: [0, 5]}]}")),
    Wrong("saves at a share of the steps, evaluations at a number", ("train.save_steps: expected a multiple of",),
          config=run_with(train="{eval_steps: 3, save_steps: 0.5, max_steps: 9}", data="{train: [{source: pairs.csv}],"
                          " eval: [{name: x, task: sts, source: scored.csv, score_range: [0, 5]}]}")),
    block("a save after no step", "train", "{save_steps: 0, max_steps: 1}",
          "train.save_steps: expected a number above 0, found the number 0"),
    block("a part of a step to warm up", "train", "{warmup_steps: 3.5}",
          "or a whole number of steps, found the number 3.5"),
    block("an optimizer whose package is not there", "train", "{optim: galore_adamw, max_steps: 1}", "train.optim"),

    command("an evaluation of nothing", "eval model", "give either --config or --data"),
    command("an evaluation of a model that is not there", "eval ./no-model --data scored.csv", "no-model"),
    command("an evaluation of a name too long", f"eval {'m' * 300} --data scored.csv", "expected a name of at most"),
    command("an evaluation on a name too long", f"eval model --data {'d' * 300}.csv", "expected a name of at most 255"),
    command("an evaluation on a set twice", "eval model --data scored.csv --data scored.csv",
            "scored.csv: given twice"),
    command("an evaluation of a model twice", "eval model model --data scored.csv", "is named twice"),
    command("a column without its role", "eval model --data scored.csv --column score", "expected ROLE=COLUMN"),
    command("a role given twice", "eval model --data scored.csv --column score=a --column score=b", "is a already"),
    command("a split beside a configuration", "eval model --config run.yaml --split test", "go with --data"),
    command("an unknown task", "eval model --data scored.csv --task stss", "expected a task of sts, retrieval"),
    command("dimensions in words", "eval model --data scored.csv --dims many", "expected numbers with commas"),
    command("a dimension beyond the model's", "eval model --data scored.csv --dims 64", "expected dims from 1 to 32"),
    command("figures into a folder that is not there", "eval model --data scored.csv --json no/x.json",
            "there is no folder no"),
    command("figures into a folder", "eval model --data scored.csv --json model", "--json model: it is a folder"),
    command("a run of nothing", "fit", "Missing option '--config'", "see `sbert-train fit --help`"),
    command("an option that is not there", "fit --config run.yaml --nope", "No such option: --nope"),
    command("a command that is not there", "fitt", "No such command 'fitt'", "see `sbert-train --help`"),
    command("a value for a switch", "fit --config run.yaml --overwrite=3", "'--overwrite' does not take a value"),
    command("a key that cannot change", "fit --config run.yaml --allow-changes seed", "--allow-changes seed: expected"),
    command("a checkpoint that is not there", "fit --config run.yaml --resume nowhere",
            "--resume nowhere: expected auto, never, or a folder that is or holds checkpoints"),
    command("two files of one name", "eval model --data a/x.csv --data b/x.csv", "named x, as a/x.csv is"),
    command("an unknown recipe", "configs show quikstart", "(did you mean quickstart?)"),
    command("a recipe over a file", "configs copy quickstart run.yaml", "run.yaml: exists already"),
    command("an unknown export", "export model --to pickle --output out", "pickle", "onnx"),
    command("an export of what is not there", "export ./no-model --output out", "no folder ./no-model here;"),
    command("broken data of an evaluation", "eval model --data bad.csv", "bad.csv, line 2: expected 3 fields",
            files={"bad.csv": "sentence1,sentence2,score\na,b\n"}),
    Wrong("a run into a file", ("output_dir: pairs.csv is a file",), config=run_with(output_dir="pairs.csv")),
    Wrong("a run into a folder of other things", ("output_dir: model holds files that are not those of a run",),
          config=run_with(output_dir="model")),
    Wrong("a run below a file", ("output_dir: pairs.csv/run cannot be made", "is a file"),
          config=run_with(output_dir="pairs.csv/run")),
]  # fmt: skip

WRONG_CONFIGS = [*KEYS, *TYPES, *TOGETHER, *YAML]
WRONG_MODELS = MODELS
WRONG_COMMANDS = COMMANDS
